--- Ops that are made, or whose file is loaded, when they are first asked for: whichever way that is, they are there in all ways.
local flow = require "flow"
local native = require "flow.ffi"
local signature = require "flow.signature"
local support = require "spec.support.init"

local x, symbol, variable = flow.tensor { { 0.5, -1, 2 } }, flow.Input { 3 }, flow.Variable(flow.ones { 2 })
local ways = {
  function(name) return flow[name] end, function(name) return x[name] end,
  function(name) return symbol[name] end, function(name) return variable[name] end,
}

--- Names of ops that nobody has asked for, in order.
local function waiting()
  local names = {}
  for name in pairs(native.late_methods) do names[#names + 1] = name end
  table.sort(names)
  return names
end

--- What a separate program says, in which no op was asked for before.
local function output_of(program) return support.run(support.command .. " " .. support.file("later.lua", program)) end

describe("an op that is made later", function()
  it("is a function of flow and a method of tensors, symbolic tensors and variables, whichever is asked for first", function()
    local names = waiting()
    assert.is_true(#names > 60, #names)
    for i, name in ipairs(names) do
      for k = 0, 3 do
        local found = ways[(i + k * (i % 8 < 4 and 1 or 3)) % 4 + 1](name)
        assert.is_true(signature.is_callable(found), name .. ", way " .. k)
      end
    end
    assert.same({}, waiting())
  end)

  it("is in the lists of names before and after it was made", function()
    local text = output_of [[
      local flow = require "flow"
      local names = require "flow.reference.names"
      local found, all = names.of(flow.ones { 1 }), names.of(flow)
      print(found.exp, found.negative, found.argmax, all.exp, all.negative, all.argmax)
      print(pcall(function() return flow.ones { 1 }:expp() end))
      print(pcall(function() return flow.Variable(1):expp() end))
      print(pcall(function() return flow.keras.ops.expp(1) end))]]
    assert.equal(1, select(2, text:gsub("method\tmethod\tmethod\tfield\tfield\tfield\n", "")), text)
    assert.equal(3, select(2, text:gsub('did you mean "exp"%?', "")), text)
  end)

  it("may be asked for between a text and the function which that is of", function()
    local text = output_of [[
      local flow = require "flow"
      local signature = require "flow.signature"
      local module = signature.module "module"
      signature.takes "count: whole"
      local exp, argmax = flow.exp, flow.argmax
      function module.f(count) return count + exp(0):item() + argmax(flow.tensor { 1, 3 }):item() end
      print(module.f(2), pcall(module.f, "a"))]]
    assert.truthy(text:find("^5\tfalse\t[^\n]*count is a whole number"), text)
  end)
end)

describe("an op of a file that is loaded later", function()
  it("is a method of symbolic tensors and variables after an eager call, too", function()
    local composed, count = require "flow.tensor.composed", 0
    for _, name in ipairs(composed.names()) do
      if composed.find(name) and native.methods[name] then
        count = count + 1
        assert.is_function(symbol[name], name)
        assert.is_function(variable[name], name)
      end
    end
    assert.is_true(count > 150, count)
  end)
end)
