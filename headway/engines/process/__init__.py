"""What the engines that run in this process share: runs, their boxes and queues, readings, and drop boxes."""
