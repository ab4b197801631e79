"""Files, expressions, data and states that nobody would write, against everything that reads them.

A case is a kind, a seed and a size; the same three make the same case again, on any machine. It must end within ten
seconds and in bounded memory, well or with a HeadwayError of at most 3,000 characters. A traceback, a crash, a hang, a
good row that is lost, or a result that hangs on trains is a finding.
"""
