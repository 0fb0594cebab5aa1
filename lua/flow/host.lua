-- host.lua: what flowlua needs of the Lua that loads it; if something is missing, one sentence says what. This file is read first, so it is
-- written for every Lua from 5.1 on. A host may leave out os, io and package: functions that need them fail when they are called.
--
-- Other modules take os, io and debug from here: without os or io a message names what is missing, and debug may be gone later.

if type(rawget(_G, "jit")) ~= "table" then
  error("flowlua needs LuaJIT 2.1, this is " .. tostring(_VERSION) .. ": run the program with luajit or with flowlua", 0)
end
if not pcall(require, "ffi") then
  error("flowlua needs LuaJIT's FFI, and this state does not let it load the module ffi: a sandbox has to allow it", 0)
end
if type(rawget(_G, "debug")) ~= "table" then
  error("flowlua needs Lua's debug library, for the registry and for the lines that messages name, and this state does not have it", 0)
end

local host = {}

-- The library, or one whose functions say that it is missing.
local function library(name)
  local found = rawget(_G, name)
  if type(found) == "table" then return found end
  return setmetatable({}, { __index = function(_, key)
    error(("flowlua needs %s.%s here, and this state does not have Lua's %s library"):format(name, key, name), 0)
  end })
end

host.os, host.io, host.debug = library("os"), library("io"), debug

-- A variable of the environment; nil where there is none, or no way to ask.
function host.getenv(name)
  local os = rawget(_G, "os")
  return type(os) == "table" and os.getenv and os.getenv(name) or nil
end

-- Whether a file can be read, and if not, why; true where this state cannot tell.
function host.readable(path)
  local io = rawget(_G, "io")
  if type(io) ~= "table" or not io.open then return true end
  local file, why = io.open(path, "rb")
  if file then file:close() end
  return file ~= nil, why
end

-- The path of a C module on package.cpath, or nil.
function host.c_module(name)
  local package = rawget(_G, "package")
  if type(package) ~= "table" or not package.searchpath or type(package.cpath) ~= "string" then return nil end
  return package.searchpath(name, package.cpath)
end

return host
