"""What the engines that run in this process share: runs, boxes and queues at run time, readings, and drop boxes."""
