-- - terminal.lua: a program on its own terminal, for specs of what people type: forkpty of libc. What it prints comes without the
-- sequences - that move the cursor and set colours, unless they are asked for.
local ffi = require "ffi"
local bit = require "bit"

ffi.cdef [[
  int forkpty(int *master, char *name, const void *termios, const void *size);
  int execvp(const char *file, char *const arguments[]);
  void _exit(int status);
  long read(int fd, void *buffer, size_t size);
  long write(int fd, const void *buffer, size_t size);
  int close(int fd);
  int kill(int pid, int signal);
  int waitpid(int pid, int *status, int options);
  struct spec_pollfd { int fd; short events; short revents; };
  int poll(struct spec_pollfd *fds, unsigned long count, int timeout);
  int tcgetattr(int fd, void *settings);
]]

local terminal = {}
terminal.__index = terminal

local PATIENCE = 20000      -- milliseconds for one answer before the spec fails, however slow the machine is
local READABLE = 1

--- Starts a program: a list of its name and arguments. environment: variables to set, or to remove where the value is false. columns, rows:
-- the terminal's size, which it does not tell without them.
function terminal.open(arguments, environment, columns, rows)
  local list = { "env" }
  for name, value in pairs(environment or {}) do
    if not value then table.insert(list, 2, "-u") table.insert(list, 3, name) else list[#list + 1] = name .. "=" .. value end
  end
  for _, text in ipairs(arguments) do list[#list + 1] = text end
  local argv = ffi.new("const char *[?]", #list + 1)
  for i, text in ipairs(list) do argv[i - 1] = text end
  local master = ffi.new("int[1]")
  local size = columns and ffi.new("unsigned short[4]", rows, columns) or nil      -- struct winsize
  local pid = ffi.C.forkpty(master, nil, nil, size)
  if pid < 0 then error("there is no terminal to be had") end
  if pid == 0 then      -- nothing that may wait for a thread that is not there
    ffi.C.execvp("env", ffi.cast("char *const *", argv))
    ffi.C._exit(127)
  end
  return setmetatable({ pid = pid, fd = master[0], text = "", arguments = list }, terminal)
end

--- Types a text.
function terminal:send(text)
  ffi.C.write(self.fd, text, #text)
end

local buffer = ffi.new("char[65536]")

-- Reads what there is; false at the end of the program.
local function more(self)
  local waiting = ffi.new("struct spec_pollfd[1]")
  waiting[0].fd, waiting[0].events = self.fd, READABLE
  if ffi.C.poll(waiting, 1, PATIENCE) <= 0 then error("nothing came for a long time; so far: " .. self.text) end
  local count = tonumber(ffi.C.read(self.fd, buffer, 65536))
  if count <= 0 then return false end
  self.text = self.text .. ffi.string(buffer, count)
  return true
end

--- A text without the sequences of a terminal.
function terminal.plain(text)
  return (text:gsub("\27%[[%d;?]*%a", ""):gsub("\27[=>]", ""):gsub("\r", ""))
end

--- Waits until what came since the last call ends in the pattern (of the plain text); returns all of it, plain, and as it came.
function terminal:wait(pattern)
  while not terminal.plain(self.text):find(pattern) do
    if not more(self) then error("the program ended; it had printed: " .. self.text) end
  end
  local text = self.text
  self.text = ""
  return terminal.plain(text), text
end

local LFLAG, ICANON = 3, 2      -- of Linux' struct termios

-- Whether the program sleeps, and edits lines itself if raw: a program that prints its prompt first and then sets up the terminal misses
-- keys that are pressed in between.
local function reads(self, raw)
  local stat = assert(io.open(("/proc/%d/stat"):format(self.pid)))
  local asleep = stat:read("*a"):match("%) (%a)") == "S"
  stat:close()
  local settings = ffi.new("uint32_t[64]")
  ffi.C.tcgetattr(self.fd, settings)
  return asleep and not (raw and bit.band(settings[LFLAG], ICANON) ~= 0)
end

--- The same for a prompt: returns once the program reads what is typed. raw: it edits lines itself.
function terminal:wait_for_prompt(pattern, raw)
  local plain, text = self:wait(pattern)
  local left = PATIENCE
  while not reads(self, raw) do
    if left == 0 then error("the program does not read what is typed; it had printed: " .. text) end
    left = left - 1
    ffi.C.poll(nil, 0, 1)
  end
  return plain, text
end

--- Waits for the end; returns what came, plain, and the exit code.
function terminal:finish()
  while more(self) do end
  local status = ffi.new("int[1]")
  ffi.C.waitpid(self.pid, status, 0)
  ffi.C.close(self.fd)
  return terminal.plain(self.text), math.floor(status[0] / 256)
end

return terminal
