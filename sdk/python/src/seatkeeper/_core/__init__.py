"""The holder's state machine of one seat, without I/O, clocks, threads or randomness.

``Machine.step`` takes an event, a reading of the clocks and a random number, and returns actions for the driver.
Points and spans are whole nanoseconds, so that sums are exact.
"""
