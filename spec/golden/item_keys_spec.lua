-- item_keys_spec.lua: parts of a tensor as Keras' files have them, x[:, ::-1] or x[..., 0], are what Keras computes: opened by Lua and by
-- C, and written again. item_keys.py makes the model and the values.
local support = require "spec.support.init"
local flow = require "flow"

local folder = support.root .. "spec/golden/"
local COUNT = 15

local function expect_parts(model, what)
  local found = model:predict(flow.load_npz(folder .. "item_keys.npz", "x"), { verbose = 0 })
  for i = 1, COUNT do
    local y = flow.load_npz(folder .. "item_keys.npz", "y" .. i)
    assert.same(y.shape, found[i].shape, ("%s, output %d"):format(what, i))
    assert.same(y:totable(), found[i]:totable(), ("%s, output %d"):format(what, i))
  end
end

describe("parts of a tensor in a file of Keras", function()
  local temporary = support.file("model.keras", "")

  it("are opened by Lua, written again and opened", function()
    local model = flow.models.load_model(folder .. "item_keys.keras")
    expect_parts(model, "opened")
    model:save(temporary)
    expect_parts(flow.models.load_model(temporary), "written again")
    expect_parts(flow.models.shared(temporary), "written again, by C")
  end)

  it("are refused where the file names no position or no tensor", function()
    local input = '"class_name":"InputLayer","name":"a","config":{"batch_shape":[null,4],"dtype":"float32","name":"a"},"inbound_nodes":[]'
    local tensor = '{"class_name":"__keras_tensor__","config":{"shape":[null,4],"dtype":"float32","keras_history":["a",0,0]}}'
    local function read(x, key)
      local args = ('"inbound_nodes":[{"args":[%s,[%s]],"kwargs":{}}]'):format(x, key)
      return flow.models.model_from_json(('{"class_name":"Functional","config":{"name":"f","layers":[{%s},{"class_name":"GetItem",'
        .. '"module":"keras.src.ops.numpy","registered_name":"GetItem","name":"g","config":{"name":"g"},%s}],'
        .. '"input_layers":[["a",0,0]],"output_layers":[["g",0,0]]}}'):format(input, args))
    end
    local function slice(start, step)
      return ('{"class_name":"__slice__","config":{"start":%s,"stop":null,"step":%s}}'):format(start, step)
    end
    for _, case in ipairs {
      { tensor, slice('"x"', "null"), 'begins or ends at the string "x"' }, { tensor, slice("[1]", "null"), "begins or ends at a table" },
      { tensor, slice("0.5", "null"), "begins or ends at the number 0.5" }, { tensor, slice("0", "{}"), "begins or ends at a table" },
      { tensor, "0.5", "begins or ends at the number 0.5" }, { "[[1]]", "0", "takes a part of a table, expected a tensor of the model" },
    } do
      local message = support.message_of(function() read(case[1], case[2]) end)
      assert.truthy(message:find(case[3], 1, true), message)
    end
    for _, config in ipairs { "3", "null" } do      -- a slice without positions is the whole axis
      local model = read(tensor, ('{"class_name":"__slice__","config":%s}'):format(config))
      assert.same({ 2, 4 }, model:predict(flow.ones { 2, 4 }, { verbose = 0 }).shape)
    end
  end)

  it("are opened by C", function() expect_parts(flow.models.shared(folder .. "item_keys.keras"), "by C") end)
end)
