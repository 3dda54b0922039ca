"""Publishing: merges the finished intake runs into the newest snapshot and commits the next one."""
