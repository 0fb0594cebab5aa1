-- start_spec.lua: what a start loads and does, before the script says anything: times differ from machine to machine, these numbers do not.
local support = require "spec.support.init"

local MODULES = "cdef.functions cdef.types devices errors ffi host init interrupts scopes signature tensor "
  .. "tensor.array_ops tensor.define_op tensor.integers tensor.ops tensor.shape_ops"
local OF_THE_PROGRAM = "at_exit cli.main"

-- Millions of instructions from the command to the first tensor, as gcc 12 compiles it; they may be fewer. Whether LuaJIT compiles a loop
-- of the start, which takes 0.25, depends on where the loop is in memory. Each op of ops.def takes 0.008: its name is looked up.
local MOST_MILLIONS = 23.4

-- Lists the loaded modules, and counts the signatures that were parsed.
local COUNT = [[
  local names = {}
  for name in pairs(package.loaded) do
    if name:find "^flow" then names[#names + 1] = name == "flow" and "init" or name:gsub("^flow%.", "") end
  end
  table.sort(names)
  print(table.concat(names, " "))
]]

local function loaded(command)
  return (support.run(command):match("[^\n]*"))
end

local function with(list, more)
  local names = {}
  for name in (list .. " " .. more):gmatch("%S+") do names[#names + 1] = name end
  table.sort(names)
  return table.concat(names, " ")
end

describe("a start", function()
  it("loads these modules and no others, of which none parses a signature", function()
    local path = ("package.path = '%slua/?.lua;%slua/?/init.lua;' .. package.path "):format(support.root, support.root)
    if not os.getenv("FLOW_SANITIZED") then      -- luajit cannot load a build with sanitizers
      assert.equal(MODULES, loaded(("luajit -e \"%s require 'flow'\" -e '%s'"):format(path, COUNT)))
    end
    assert.equal(with(MODULES, OF_THE_PROGRAM), loaded(("%s -e '%s'"):format(support.program, COUNT)))
  end)

  it("takes no more instructions than it did", function()
    local reason = support.cannot_count_instructions()
    if reason then return pending(reason) end
    local text = support.run("valgrind --tool=callgrind --callgrind-out-file=/dev/null " .. support.program .. " -e 'flow.zeros{2}'")
    local found = tonumber((text:match("Collected : (%d+)"))) / 1e6
    assert.is_true(found <= MOST_MILLIONS, ("%.1f million instructions, expected at most %.1f"):format(found, MOST_MILLIONS))
  end)

  it("says that a library is another one than flowlua's", function()
    local path = ("%slua/?.lua;%slua/?/init.lua"):format(support.root, support.root)
    local output = support.run(("env FLOWLUA_LIB=libm.so.6 LUA_PATH='%s' luajit -e 'require \"flow\"'"):format(path))
    assert.truthy(output:find("set FLOWLUA_LIB to libflow.so.0; tried\n  libm.so.6 is another library: ", 1, true), output)
  end)
end)
