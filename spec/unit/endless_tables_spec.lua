-- endless_tables_spec.lua: a table that contains itself, as the first entry of a list, as a later one, by name: whatever walks over tables
-- of users raises and says so. It neither runs for ever, nor does it end in "stack overflow".
local support = require "spec.support.init"
local flow = require "flow"
local json = require "flow.json"
local message_of = support.message_of
local Dataset, tree = flow.data.Dataset, flow.keras.tree

jit.off()      -- compiled code calls no hooks
local x = flow.ones { 2 }

local function first() local c = {} c[1] = c return c end
local function later() local c = { 1 } c[2] = c return c end
local function named() local c = { a = x } c.b = c return c end
local function with_tensor() local c = { x } c[2] = c return c end
local ALL = { first, later, named, with_tensor }

local function keep(...) return ... end

-- What to call, with the tables to call it with.
local CASES = {
  { "flow.fn", flow.fn(function() return x end), ALL },
  { "flow.fn, its result", function(c) return flow.fn(function(a) return c end)(x) end, ALL },
  { "tree.flatten", tree.flatten, ALL },
  { "tree.flatten_with_path", tree.flatten_with_path, ALL },
  { "tree.map_structure", function(c) return tree.map_structure(keep, c) end, ALL },
  { "tree.map_structure_up_to", function(c) return tree.map_structure_up_to(c, keep, c) end, ALL },
  { "tree.assert_same_structure", function(c) return tree.assert_same_structure(c, c) end, ALL },
  { "tree.pack_sequence_as", function(c) return tree.pack_sequence_as(c, {}) end, ALL },
  { "tree.traverse", function(c) return tree.traverse(function() end, c) end, ALL },
  { "tree.traverse, from the leaves", function(c) return tree.traverse(function() end, c, false) end, ALL },
  { "flow.tensor", flow.tensor, { first } },
  { "flow.concat", function(c) return flow.concat(c, 1) end, { first } },
  { "flow.Variable", flow.Variable, { first } },
  { "from_tensor_slices", Dataset.from_tensor_slices, { first, named, with_tensor } },
  { "from_tensors", Dataset.from_tensors, { first, named, with_tensor } },
  { "ds:map, its result", function(c) return Dataset.range(2):map(function() return c end) end, { first, named, with_tensor } },
  { "from_generator", function(c) return Dataset.from_generator(function() end, { output_signature = c }) end, { first, later } },
  { "flow.scan", function(c) return flow.scan(function(a, b) return a, b end, c, x) end, ALL },
  { "flow.scan, xs", function(c) return flow.scan(function(a, b) return a, b end, x, c) end, { first, with_tensor } },
  { "flow.map", function(c) return flow.map(keep, c) end, { first } },
  { "flow.vectorized_map", function(c) return flow.vectorized_map(keep, c) end, { first } },
  { "tape:gradient", function(c) return flow.GradientTape():gradient(x, c) end, { first, named, with_tensor } },
  { "tape:gradient, the target", function(c) return flow.GradientTape():gradient(c, x) end, { first, with_tensor } },
  { "tape:watch", function(c) return flow.GradientTape():watch(c) end, { first, with_tensor } },
  { "an axis", flow.layers.BatchNormalization, { first } },
  { "compute_output_shape", function(c) return flow.layers.Dense(2):compute_output_shape(c) end, { first } },
  { "tape:jacobian", function(c) return flow.GradientTape():jacobian(x, c) end, { first, named, with_tensor } },
  { "json.encode", json.encode, { first, later } },
  { "serialize_keras_object", flow.keras.saving.serialize_keras_object, { first, later } },
  { "deserialize_keras_object", flow.keras.saving.deserialize_keras_object, { first, later } },
  { "model:predict", function(c)
    return flow.Sequential({ flow.layers.Input { 2 }, flow.layers.Dense(1) }):predict(c)
  end, { first } },
}

describe("a table that contains itself", function()
  for _, case in ipairs(CASES) do
    it("is refused by " .. case[1], function()
      for number, make in ipairs(case[3]) do
        -- A walk without an end would only be stopped from outside.
        local rounds = 0
        debug.sethook(function()
          rounds = rounds + 1
          if rounds > 100 then error("it has no end", 0) end
        end, "", 1000000)
        local ok, message = pcall(case[2], make())
        debug.sethook()
        assert.is_false(ok, number)
        assert.matches("the value is nested more than 800 deep; does a table contain itself?", tostring(message), 1, true)
      end
    end)
  end

  it("is named with the line of the caller", function()
    assert.equal("flow.tensor: the value is nested more than 800 deep; does a table contain itself?",
      message_of(function() flow.tensor(first()) end))
  end)
end)
