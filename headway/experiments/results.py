"""What an experiment leaves on disk: NAME.csv, NAME.png, NAME.svg, and the verdict, NAME.json and NAME.txt."""
