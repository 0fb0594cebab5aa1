-- Names with a zero byte, at which C would end them: an error where the name is given.
local flow = require "flow"
local support = require "spec.support.init"

local NAME = "a\0b"

local MAKERS = {
  layer = function() flow.layers.Dense(1, { name = NAME }) end,
  ["layer in Lua"] = function() flow.layers.Layer:extend "Own" { name = NAME } end,
  input = function() flow.Input({ 2 }, { name = NAME }) end,
  sequential = function() flow.Sequential({ flow.layers.Input { 2 }, flow.layers.Dense(1) }, { name = NAME }) end,
  model = function()
    local input = flow.Input { 2 }
    flow.Model { inputs = input, outputs = flow.layers.Dense(1)(input), name = NAME }
  end,
  metric = function() flow.metrics.MeanAbsoluteError { name = NAME } end,
  variable = function() flow.Variable(1, { name = NAME }) end,
  weight = function() flow.layers.Dense(1):add_weight { name = NAME, shape = { 1 } } end,
  array = function() flow.save_npz(support.folder() .. "/a.npz", { [NAME] = flow.ones { 1 } }) end,
}

describe("a name with a zero byte", function()
  for what, make in pairs(MAKERS) do
    it("is refused for a " .. what, function()
      local message = support.message_of(make)
      assert.is_truthy(message:find("a name has no zero bytes, got", 1, true), message)
    end)
  end
end)
