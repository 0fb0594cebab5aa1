-- tail_calls.lua: the line of `return flow.f(...)` in a user's function. LuaJIT keeps no frame of a function that ends in a tail call: what
-- is left is the line that called it, and the variable by which it was called. Loaded by the first error that may need it.
--
-- It works by the names of calls: the frame at a level says under which name it was called; if the function that this name stands for is
-- another one than the function that runs, the named one has ended in a tail call. Its bytecode (jit.util) then tells the line, if there is
-- only one such call in it. Wherever something is not known the answer is nil, and the message names the line of the caller.

local debug = require("flow.host").debug
local errors = require "flow.errors"

local tail_calls = {}

local has_util, util = pcall(require, "jit.util")

-- The operation of the instruction at pc; nil beyond the last.
local function operation(f, pc)
  local instruction = util.funcbc(f, pc)
  return instruction and instruction % 256
end

-- The operations of calls that return, which versions of LuaJIT number differently: those that these functions end in.
local function tail_operations()
  local found = {}
  for _, sample in ipairs { function(f) return f() end, function(f, ...) return f(...) end } do
    local pc = 0
    while operation(sample, pc + 1) do pc = pc + 1 end
    found[operation(sample, pc)] = true
  end
  return found
end

-- The value of the variable by which the function at a level of the stack called the next one; as debug.getinfo counts for the caller.
local function called_by_name(level, name, kind)
  local value
  if kind == "local" then
    for i = 1, 250 do
      local found, content = debug.getlocal(level + 1, i)
      if not found then break end
      if found == name then value = content end
    end
    return value
  end
  local f = debug.getinfo(level + 1, "f").func
  if kind == "global" then return rawget(getfenv(f), name) end
  for i = 1, 60 do
    local found, content = debug.getupvalue(f, i)
    if not found then return nil end
    if found == name then return content end
  end
end

-- "file:line" of the only tail call in the function that the frame at `level` (as debug.getinfo counts for the caller) has called, where
-- another function runs in its place; nil where it is not so, or not known.
function tail_calls.position(level)
  local callee = debug.getinfo(level, "nf")
  local kind = callee and callee.namewhat
  if not has_util or not debug.getlocal or not debug.getupvalue then return nil end
  if kind ~= "local" and kind ~= "upvalue" and kind ~= "global" then return nil end
  local f = called_by_name(level + 1, callee.name, kind)
  if type(f) ~= "function" or f == callee.func then return nil end
  local info = debug.getinfo(f, "S")
  if info.what == "C" or errors.is_ours(info.source) then return nil end
  local wanted, line, pc = tail_operations(), nil, 1
  while operation(f, pc) do
    if wanted[operation(f, pc)] then
      local here = util.funcinfo(f, pc).currentline
      if line and line ~= here then return nil end
      line = here
    end
    pc = pc + 1
  end
  return line and info.short_src .. ":" .. line
end

return tail_calls
