-- processes.lua: what the drivers of faults need of the operating system.
--
--   processes.now()            seconds since 1970                 processes.sleep(seconds)
--   processes.read(path)       the text of a file, or nil         processes.write(path, text)
--   processes.shell(command)   what it prints
local ffi = require "ffi"

local processes = {}

ffi.cdef [[
  typedef struct { long seconds, nanoseconds; } process_time;
  int clock_gettime(int clock, process_time *time);
  int usleep(unsigned microseconds);
]]

function processes.now()
  local time = ffi.new "process_time"
  ffi.C.clock_gettime(0, time)
  return tonumber(time.seconds) + 1e-9 * tonumber(time.nanoseconds)
end

function processes.sleep(seconds)
  local at = processes.now() + seconds
  while processes.now() < at do ffi.C.usleep(20000) end
end

function processes.read(path)
  local file = io.open(path)
  if not file then return nil end
  local text = file:read "*a"
  file:close()
  return text
end

function processes.write(path, text)
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
end

function processes.shell(command)
  local pipe = assert(io.popen(command))
  local text = pipe:read "*a"
  pipe:close()
  return text
end

return processes
