-- mixing.lua: layers that mix pictures of a batch, their labels with them, and those that choose among other layers at random: MixUp,
-- CutMix, RandAugment, AugMix; MaxNumBoundingBoxes (keras.src.layers.preprocessing.image_preprocessing).

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local tensor = require "flow.tensor"
local ops = require "flow.tensor.ops"
local random = require "flow.tensor.random"
local tools = require "flow.tensor.composed.tools"
local image_layer = require "flow.layers.images.image_layer"
local places = require "flow.layers.images.random_places"

local C, raise = native.C, errors.raise
local define = image_layer.define
local HALF = { 0, 1 }
local RANGE, SEED = "value_range: list = nil", "seed: whole = nil"
local FORMAT, INTERPOLATION = "data_format: 'channels_last' = 'channels_last'", "interpolation: 'nearest'|'bilinear' = 'bilinear'"
local mixing = {}

---- pictures with one another ----------------------------------------------------------------------------------------------------------

-- For each picture the number of another one, from 0: {n}.
local function draw_order(self, x)
  return tools.argsort(random.uniform({ image_layer.rows(x) }, image_layer.options(self, {})), 1) - 1
end

-- The rows of x, {n, ...}, in an order {n}; n need not be known.
local function rows_in(x, order)
  local dims, size = tensor.raw_shape(x), 1
  if #dims == 1 then return tools.take_along(x, order, 1) end
  for i = 2, #dims do size = size * dims[i] end
  local numbers = ops.repeat_(ops.reshape_raw(order, { tensor.raw_shape(order)[1], 1 }), size, 2)
  return ops.reshape_raw(tools.take_along(ops.reshape_raw(x, { dims[1], size }), numbers, 1), dims)
end

local function tensor_of(self, value) return ops.operand(value, nil, object.title(self)) end

-- Labels {n, classes} as the mean of both pictures' with the share of the first, {n, 1}.
local function mix_labels(self, labels, _, drawn)
  labels = tensor_of(self, labels):to "float32"
  local dims = tensor.raw_shape(labels)
  if #dims ~= 2 then
    raise("%s: labels of rank %d, expected {batch, classes}: a mixture of two classes needs flow.one_hot", object.title(self), #dims)
  end
  local share = ops.reshape_raw(drawn.share, { tensor.raw_shape(drawn.share)[1], 1 })
  return labels * share + rows_in(labels, drawn.order) * (1 - share)
end

-- The boxes of both pictures, {n, 2 k, 4}. A single picture is mixed with itself.
local function mix_boxes(self, found, _, drawn, single)
  if single then return found end
  local result = {}
  for name, value in pairs(found) do result[name] = value end
  for _, name in ipairs { "boxes", "labels" } do
    local x = tensor_of(self, found[name])
    result[name] = ops.concat({ x, rows_in(x, drawn.order) }, 2)
  end
  return result
end

local function refuse_masks(self) raise("%s: segmentation_masks: classes of pixels cannot be mixed", object.title(self)) end

mixing.MixUp = define("MixUp", { "alpha: positive = 0.2", FORMAT, SEED }, {
  draw = function(self, x, given)
    return { order = draw_order(self, x),
             share = random.beta({ image_layer.rows(x), 1, 1, 1 }, given.alpha, given.alpha, image_layer.options(self, {})) }
  end,
  change = function(_, x, _, drawn) return x * drawn.share + rows_in(x, drawn.order) * (1 - drawn.share) end,
  labels = mix_labels, boxes = mix_boxes,
  masks = refuse_masks,
})

local function cut_mix(_, x, _, drawn) return ops.where(drawn.inside, rows_in(x, drawn.order), x) end
mixing.CutMix = define("CutMix", { "factor: number|list = 1", SEED, FORMAT }, {
  factors = { factor = HALF },
  draw = function(self, x, given)
    local dims, options = tensor.raw_shape(x), image_layer.options
    local alpha = random.uniform({ 1 }, options(self, { minval = given.factor[1], maxval = given.factor[2] })) + 1e-6
    local side = ops.sqrt(1 - random.beta({ image_layer.rows(x), 1, 1, 1 }, alpha, alpha, options(self, {})))
    local box = places.draw_box(self, x, side, side)
    return { order = draw_order(self, x), inside = places.inside(x, box),
             share = 1 - (box.x1 - box.x0) * (box.y1 - box.y0) / (dims[2] * dims[3]) }
  end,
  change = cut_mix, labels = mix_labels,
  masks = function(self, masks, given, drawn, single) return single and masks or cut_mix(self, tensor_of(self, masks), given, drawn) end,
})

---- one of many layers ---------------------------------------------------------------------------------------------------------------

local FIRST = { "RandomShear", "RandomTranslation", "RandomRotation" }
local COLORS = { "RandomBrightness", "RandomColorDegeneration", "RandomContrast", "RandomSharpness" }
local LAST = { "RandomPosterization", "Solarization", "AutoContrast", "Equalization" }

-- The layers of these names with one factor for all.
local function layers_of(self, given, ...)
  local layers, list = require "flow.layers", {}
  local factor, interpolation, range = given.factor, given.interpolation, given.value_range
  local arguments = {
    RandomShear = { x_factor = factor, y_factor = factor, interpolation = interpolation },
    RandomTranslation = { height_factor = factor, width_factor = factor, interpolation = interpolation },
    RandomRotation = { factor = factor, interpolation = interpolation },
    RandomPosterization = { factor = math.max(1, math.floor(8 * factor[2])), value_range = range },
    Solarization = { addition_factor = factor, threshold_factor = factor, value_range = range },
    AutoContrast = { value_range = range }, Equalization = { value_range = range },
  }
  for _, names in ipairs { ... } do
    for _, name in ipairs(names) do
      local own = arguments[name] or { factor = factor, value_range = range }
      own.name, own.dtype = self.name .. "_" .. name, self._policy.name
      if name ~= "AutoContrast" and name ~= "Equalization" then own.seed = given.seed end
      list[#list + 1] = layers[name](own)
    end
  end
  return list
end

-- A whole number from 0 to below n for one step: a Lua number, or a tensor in a trace.
local function draw_number(self, n)
  local number = random.randint({ 1 }, 0, n, image_layer.options(self, {}))
  return C.flow_trace_depth(native.context) > 0 and number or number:item()
end

-- Which of the layers changes pictures x, and what it draws for it: { number =, [i] = of layer i }. In a trace all of them draw.
local function draw_choice(self, x)
  local choice = { number = draw_number(self, #self._list) }
  for i, layer in ipairs(self._list) do
    if choice.number == i - 1 or type(choice.number) ~= "number" then choice[i] = image_layer.draw(layer, x) end
  end
  return choice
end

-- x as f(layer, x, drawn) changes it, of the layer that was chosen. In a trace all of them run.
local function change_by(list, choice, x, f)
  if type(choice.number) == "number" then return f(list[choice.number + 1], x, choice[choice.number + 1]) end
  local y = x
  for i, layer in ipairs(list) do y = ops.where(ops.eq(choice.number, i - 1), f(layer, x, choice[i]), y) end
  return y
end

-- Masks as a layer changes them with what it drew for the pictures.
local function masks_with(layer, masks, drawn) return layer:transform_segmentation_masks(masks, drawn) end

mixing.RandAugment = define("RandAugment", { RANGE, "num_ops: count = 2", "factor: number|list = 0.5", INTERPOLATION, SEED, FORMAT }, {
  factors = { factor = HALF },
  prepare = function(self, given) rawset(self, "_list", layers_of(self, given, FIRST, COLORS, LAST)) end,
  draw = function(self, x, given)
    local choices = {}
    for i = 1, given.num_ops do choices[i] = draw_choice(self, x) end
    return choices
  end,
  change = function(self, x, _, drawn)
    for _, choice in ipairs(drawn) do x = change_by(self._list, choice, x, image_layer.change) end
    return x
  end,
  masks = function(self, masks, _, drawn)
    for _, choice in ipairs(drawn) do masks = change_by(self._list, choice, masks, masks_with) end
    return masks
  end,
  moves = function(self, boxes, _, drawn, height, width)
    local function move(layer, found, own) return (image_layer.moved(layer, found, own, height, width)) end
    for _, choice in ipairs(drawn) do boxes = change_by(self._list, choice, boxes, move) end
    return boxes
  end,
})

-- The mean of num_chains chains of changes, mixed with the pictures (D. Hendrycks et al., "AugMix", 2020). As in Keras, which layers a
-- chain has is drawn again for each call, in a trace once.
mixing.AugMix = define("AugMix", { RANGE, "num_chains: count = 3", "chain_depth: count = 3", "factor: number|list = 0.3",
    "alpha: positive = 1", "all_ops: boolean = true", INTERPOLATION, SEED, FORMAT }, {
  factors = { factor = HALF },
  prepare = function(self, given) rawset(self, "_list", layers_of(self, given, FIRST, LAST, given.all_ops and COLORS or {})) end,
  change = function(self, x, given)
    local options = image_layer.options
    local weights = random.gamma({ given.num_chains }, given.alpha, options(self, {}))
    weights = weights / ops.sum(weights)
    local own, sum = random.beta({ 1 }, given.alpha, given.alpha, options(self, {})), nil
    local choices = random.SeedGenerator(random.seed_of("AugMix", options(self, {})))
    for chain = 1, given.num_chains do
      local y = x
      for _ = 1, given.chain_depth do
        local layer = self._list[choices:next() % (#self._list + 1) + 1]      -- beyond the last one: none
        if layer then y = layer(y, { training = true }) end
      end
      y = y * tools.part(weights, 1, chain, chain)
      sum = sum and sum + y or y
    end
    return ops.clip(x * own + sum * (1 - own), given.value_range[1], given.value_range[2])
  end,
  masks = refuse_masks,
  boxes = function(_, found) return found end,      -- they stay, as in Keras: so do the pictures, in part
})

---- boxes ----------------------------------------------------------------------------------------------------------------------------

mixing.MaxNumBoundingBoxes = define("MaxNumBoundingBoxes", { "max_number: count", "fill_value: integer = -1" }, {
  always = true,
  change = function(_, x) return x end,
  -- { boxes = {batch, n, 4}, labels = {batch, n} } with max_number in place of n.
  boxes = function(self, found, given, _, single)
    local result, most = {}, given.max_number
    if type(found) ~= "table" or found.boxes == nil or found.labels == nil then
      raise("%s: bounding_boxes is a table { boxes = , labels = }, got %s", object.title(self), errors.describe(found))
    end
    for name, value in pairs { boxes = found.boxes, labels = found.labels } do
      local x, axis = tensor_of(self, value), single and 1 or 2
      local n = tools.length(x, axis, "MaxNumBoundingBoxes")
      local widths = {}
      for i = 1, #tensor.raw_shape(x) do widths[i] = { 0, i == axis and math.max(most - n, 0) or 0 } end
      result[name] = ops.pad(tools.part(x, axis, 1, math.min(n, most)), widths, "constant", given.fill_value)
    end
    return result
  end,
})

return mixing
