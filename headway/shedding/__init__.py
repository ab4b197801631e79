"""Load shedding: detecting overload, finding its cause, and deciding what to drop, where, and how much."""
