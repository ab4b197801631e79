"""What a checked network compiles to, the same for every engine."""

from headway.program.program import Program, ProgramBox, compile_program

__all__ = ["Program", "ProgramBox", "compile_program"]
