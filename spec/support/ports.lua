-- ports.lua: ports of this machine for the tasks of a test. A port that was taken here stays bound, without listening, while this process
-- lives: the system gives it to nobody else, a connection to it is refused, and a task that binds it with SO_REUSEADDR, as the sockets of
-- flowlua, sshd and Slurm do, can listen on it.
local ffi = require "ffi"

ffi.cdef [[
  struct ports_address { uint16_t family, port; uint8_t host[4], zero[8]; };
  int socket(int domain, int type, int protocol);
  int setsockopt(int socket, int level, int name, const void *value, uint32_t size);
  int bind(int socket, const struct ports_address *address, uint32_t size);
  int getsockname(int socket, struct ports_address *address, uint32_t *size);
  int close(int file);
]]

local INET, STREAM, CLOSE_ON_EXEC, SOL_SOCKET, REUSE_ADDRESS = 2, 1, 0x80000, 1, 2

local ports = {}

local function swap_bytes(port) return math.floor(port / 256) + port % 256 * 256 end

-- Binds `port` (0: any) on all interfaces. Returns the socket and the port; nil where another process has it.
local function hold(port)
  local made = ffi.C.socket(INET, STREAM + CLOSE_ON_EXEC, 0)
  assert(made >= 0, "no socket")
  local address, size = ffi.new "struct ports_address", ffi.new("uint32_t[1]", 16)
  ffi.C.setsockopt(made, SOL_SOCKET, REUSE_ADDRESS, ffi.new("int[1]", 1), 4)
  address.family, address.port = INET, swap_bytes(port)
  if ffi.C.bind(made, address, 16) ~= 0 then
    ffi.C.close(made)
    return
  end
  assert(ffi.C.getsockname(made, address, size) == 0)
  return made, swap_bytes(address.port)
end

-- Takes `count` ports in a row. Returns the first.
function ports.take(count)
  for _ = 1, 1000 do
    local socket, first = hold(0)
    local held = { socket }
    for i = 1, count - 1 do held[i + 1] = first + i < 65536 and hold(first + i) or nil end
    if #held == count then return first end
    for _, other in ipairs(held) do ffi.C.close(other) end
  end
  error(("no %d free ports in a row"):format(count))
end

return ports
