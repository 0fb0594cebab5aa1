--- Models whose inputs have sizes that are not known, and data for them.
local flow = require "flow"
local json = require "flow.json"
local luassert = require "luassert"
local layers = flow.layers

local unknown = {}

--- The model with the sizes of these inputs in place of those that are not known, and the same weights.
function unknown.with_sizes(model, inputs)
  local entry, next_input = json.decode(model:to_json()), {}
  for i, input in ipairs(model.inputs) do next_input[input.name] = inputs[i].shape end
  local function fill(part, inherited)
    for _, layer in ipairs(part.config.layers or {}) do
      layer.build_config = nil
      if layer.class_name == "InputLayer" then
        local shape = inherited or next_input[layer.config.name]
        for axis = 2, #shape do layer.config.batch_shape[axis] = shape[axis] end
      end
      fill(layer, inputs[1].shape)      -- models inside are called on the inputs, which all have the same shape
    end
    part.config.build_input_shape = nil
  end
  fill(entry)
  local fixed = flow.models.model_from_json(json.encode(entry))
  for _, input in ipairs(fixed.inputs) do
    for axis = 2, #input.shape do luassert.truthy(input.shape[axis] > 0) end
  end
  fixed:set_weights(model:get_weights())
  return fixed
end

function unknown.image_model(shape)
  local input = flow.Input(shape)
  local x = layers.Conv2D(4, 3, { strides = 2, padding = "same", activation = "relu" })(input)
  x = layers.Add()({ x, layers.BatchNormalization()(layers.Conv2D(4, 3, { padding = "same" })(x)) })
  return flow.Model { inputs = input, outputs = layers.Dense(2)(layers.GlobalAveragePooling2D()(layers.MaxPooling2D()(x) * 2)) }
end

function unknown.image(rows, height, width)
  return flow.random.uniform({ rows, height, width, 3 }, { seed = height * 100 + width })
end

unknown.SIZES = { { 8, 8 }, { 9, 13 }, { 16, 5 }, { 8, 8 }, { 7, 7 }, { 9, 13 } }

--- Batches of three pictures, each of another size.
function unknown.pictures()
  local spec = { { shape = { -1, -1, -1, 3 }, dtype = "float32" }, { shape = { -1, 2 }, dtype = "float32" } }
  return flow.data.Dataset.from_generator(function()
    local n = 0
    return function()
      n = n + 1
      if n <= #unknown.SIZES then return unknown.image(3, unpack(unknown.SIZES[n])), flow.ones { 3, 2 } * n end
    end
  end, { output_signature = spec })
end

function unknown.state_of(model)
  local list = {}
  for _, v in ipairs(model.variables) do list[#list + 1] = v:value() end
  for _, v in ipairs(model.optimizer.variables) do list[#list + 1] = v:value() end
  return list
end

function unknown.compiled(model)
  model:compile { optimizer = flow.optimizers.Adam(0.01), loss = "mse", metrics = { "mae" } }
  return model
end

return unknown
