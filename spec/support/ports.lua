-- ports.lua: ports of this machine for the tasks of a test. A port that was taken here stays bound, without listening, while this process
-- lives: the system gives it to nobody else, a connection to it is refused, and a task that binds it with SO_REUSEADDR, as the sockets of
-- flowlua, sshd and Slurm do, can listen on it. It is not one of those that the system gives to connections, which may come before the task
-- listens; and it is bound without SO_REUSEADDR first, since two tests that both ask for that would both get it.
local ffi = require "ffi"

ffi.cdef [[
  struct ports_address { uint16_t family, port; uint8_t host[4], zero[8]; };
  int socket(int domain, int type, int protocol);
  int setsockopt(int socket, int level, int name, const void *value, uint32_t size);
  int bind(int socket, const struct ports_address *address, uint32_t size);
  int getpid(void);
  int close(int file);
]]

local INET, STREAM, CLOSE_ON_EXEC, SOL_SOCKET, REUSE_ADDRESS = 2, 1, 0x80000, 1, 2

local ports = {}

local function swap_bytes(port) return math.floor(port / 256) + port % 256 * 256 end

-- Binds `port` on all interfaces. Returns the socket; nil where another process has the port.
local function hold(port)
  local made = ffi.C.socket(INET, STREAM + CLOSE_ON_EXEC, 0)
  assert(made >= 0, "no socket")
  local address = ffi.new "struct ports_address"
  address.family, address.port = INET, swap_bytes(port)
  if ffi.C.bind(made, address, 16) ~= 0 then
    ffi.C.close(made)
    return
  end
  ffi.C.setsockopt(made, SOL_SOCKET, REUSE_ADDRESS, ffi.new("int[1]", 1), 4)
  return made
end

-- The first and the last port below those of connections.
local FIRST, LAST = 10000, 32767
do
  local file = io.open "/proc/sys/net/ipv4/ip_local_port_range"
  local lowest = file and file:read "*n"
  if file then file:close() end
  if lowest and lowest - 1 > FIRST + 1000 then LAST = lowest - 1 end
end

-- Takes `count` ports in a row. Returns the first.
function ports.take(count)
  local state = ffi.C.getpid() + os.time() * 7919
  for _ = 1, 1000 do
    state = (state * 16807 + 11) % 2147483647
    local first, held = FIRST + state % (LAST - FIRST - count), {}
    for i = 0, count - 1 do held[i + 1] = #held == i and hold(first + i) or nil end
    if #held == count then return first end
    for _, other in ipairs(held) do ffi.C.close(other) end
  end
  error(("no %d free ports in a row"):format(count))
end

return ports
