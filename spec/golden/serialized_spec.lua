-- serialized_spec.lua: get, serialize and deserialize of flow.layers, flow.losses and the other libraries, against what Keras' own
-- serialize functions wrote (serialized.py).
local support = require "spec.support.init"
local flow = require "flow"
local json = require "flow.json"

local layers, message_of = flow.layers, support.message_of
local cases = {}
for line in io.lines(support.root .. "spec/golden/serialized.txt") do cases[#cases + 1] = { line:match "^(%S+) (.*)$" } end

local function library(path)
  local found = flow
  for part in path:gmatch "[^.]+" do found = found[part] end
  return found
end

-- Every difference between a config of ours and Keras', as text. Names of ours that have the same value as there count only.
local function differences(ours, theirs, path, found)
  for key, value in pairs(theirs) do
    local own = ours[key]
    local here = path .. "." .. tostring(key)
    local apart = key == "dtype"
    if not apart and type(value) == "table" and value ~= json.null and type(own) == "table" and own ~= json.null then
      differences(own, value, here, found)
    elseif not apart and type(value) == "number" and type(own) == "number" then
      local near = own == value or math.abs(own - value) <= 1e-6 * math.max(1, math.abs(value))
      if not near then found[#found + 1] = here .. ": " .. own .. " for " .. value end
    elseif not apart and own ~= value and not (own == nil and value == json.null) then
      found[#found + 1] = ("%s: %s for %s"):format(here, tostring(own), tostring(value))
    end
  end
  return found
end

describe("what Keras serializes", function()
  it("comes back as an object that is serialized alike", function()
    local found, count = {}, 0
    for _, case in ipairs(cases) do
      local module, entry = library(case[1]), json.decode(case[2])
      local ok, problem = pcall(function()
        local ours = module.serialize(module.deserialize(entry))
        assert(ours.class_name == entry.class_name, "class")
        if type(entry.config) == "string" then return assert(json.encode(ours) == json.encode(entry), "a function") end
        differences(ours.config, entry.config, case[1] .. "." .. entry.class_name, found)
      end)
      if not ok then found[#found + 1] = ("%s.%s: %s"):format(case[1], entry.class_name, problem) end
      count = count + 1
    end
    assert.equal("", table.concat(found, "\n"))
    assert.is_true(count > 100)
  end)

  it("gives what get finds by a name, and classes what get_config gave them", function()
    for _, kind in ipairs { "initializers", "regularizers", "constraints", "losses", "metrics", "optimizers" } do
      for _, case in ipairs(cases) do
        local entry = json.decode(case[2])
        if case[1] == kind and entry.class_name ~= "function" then
          assert.equal(entry.class_name, library(kind).serialize(library(kind).get(entry)).class_name)
        end
      end
    end
    for _, name in ipairs { "glorot_uniform", "he_normal", "zeros", "Orthogonal" } do
      assert.same({ 2, 2 }, { unpack(flow.initializers.get(name)({ 2, 2 }).shape) })
    end
    assert.near(0.08, flow.regularizers.get("l2")(flow.ones { 8 }):item(), 1e-7)
    assert.is_nil(flow.regularizers.get(nil))
    assert.equal("number", type(flow.losses.get("mse")(flow.ones { 2, 1 }, flow.zeros { 2, 1 }):item()))
    local dense = layers.Dense(3, { activation = "relu", kernel_constraint = flow.constraints.MaxNorm(2, 1) })
    for _, again in ipairs { layers.Dense.from_config(dense:get_config()), layers.Dense:from_config(dense:get_config()) } do
      assert.equal(json.encode(dense:get_config()), json.encode(again:get_config()))
    end
    assert.equal(3, dense.units)
    assert.is_nil(dense.bias_regularizer)
    assert.matches('has no field "unit"; did you mean', message_of(function() return dense.unit end), 1, true)
    local optimizer = flow.optimizers.Adam { learning_rate = 0.25, beta_1 = 0.5 }
    assert.same(optimizer:get_config(), flow.optimizers.Adam.from_config(optimizer:get_config()):get_config())
    local models = { flow.Sequential { layers.Input { 3 }, layers.Dense(2) } }
    local input = flow.Input { 3 }
    models[2] = flow.Model { inputs = input, outputs = layers.Dense(2)(input) }
    for _, model in ipairs(models) do
      local again = (model == models[1] and flow.Sequential or flow.Model).from_config(model:get_config())
      assert.equal(json.encode(model:get_config()), json.encode(again:get_config()))
    end
    assert.matches("Dense.from_config takes a table", message_of(function() layers.Dense.from_config(3) end))
    assert.matches('"Nothing" is not known in flow.losses', message_of(function() flow.losses.deserialize { class_name = "Nothing" } end))
  end)

  it("is read without the library being named, too", function()
    for _, case in ipairs(cases) do
      local entry = json.decode(case[2])
      local again = flow.utils.serialize_keras_object(flow.utils.deserialize_keras_object(entry))
      assert.equal(entry.class_name, again.class_name)
    end
  end)
end)
