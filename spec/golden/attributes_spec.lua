-- attributes_spec.lua: the objects of classes have the fields and methods of Keras' objects (attributes.txt, made by attributes.py), and
-- fields that are plain have the values that they have there.
local flow = require "flow"
local json = require "flow.json"

local folder = debug.getinfo(1, "S").source:match("^@(.*)attributes_spec%.lua$")

local function set_of(text)
  local set = {}
  for name in text:gmatch "%S+" do set[name] = true end
  return set
end

-- What is not here. By library: what belongs to other frameworks, to how Keras computes or saves, or to steps that plans do.
local MISSING = {
  layers = set_of [[add_metric call_signature_parameters convert_weight generator metrics metrics_variables
    quantized_build quantized_call rematerialized_call symbolic_call variable_serialization_spec backend
    quantization_config seed_generator inner_loop finalize_state reset_state
    update_state summary lookup_table token_counts input_idf_weights input_vocabulary input_mean input_variance implementation
    get_dropout_mask get_recurrent_dropout_mask reset_dropout_mask reset_recurrent_dropout_mask rank pool_mode partial_output_shape
    noise_shape score_mode data_format axis sparse
    channel_axis height_axis width_axis get_clipped_bbox get_shifted_bbox
    get_transformed_x_y get_elastic_transform_params height_lower height_upper width_lower width_upper
    random_brightness random_color_degeneration
    random_contrast random_hue random_posterization random_rotation random_saturation random_sharpness random_shear random_translation
    auto_contrast equalization solarization normalized_weights fill_value factor batch_shape input output optional ragged epsilon
    output_dtype use_cudnn brightness_factor contrast_factor hue_factor saturation_factor]],
  losses = set_of "fn", metrics = set_of "interpolate_pr_auc",
  optimizers = set_of [[load_own_variables save_own_variables add_optimizer_variables add_variable add_variable_from_reference update_step
    check_finite lr_adjust transpose_last_axis zeropower_via_newtonschulz5]],
  ["layers.ConvLSTM1D"] = set_of "cell", ["layers.ConvLSTM2D"] = set_of "cell", ["layers.ConvLSTM3D"] = set_of "cell",
  ["layers.Hashing"] = set_of "strong_hash",
  ["layers.StringLookup"] = set_of "vocabulary_dtype",
  ["metrics.F1Score"] = set_of "axis", ["metrics.FBetaScore"] = set_of "axis", ["metrics.BinaryIoU"] = set_of "ignore_class",
}
-- Fields whose values are others, or have no meaning here: axes count from 1; layers without variables are built at their first call.
local OTHERS = set_of [[built autocast axis axes path supports_jit supports_masking states use_cudnn factor height_factor width_factor
  attention_axes dims]]
-- Layers whose dtype is that of their outputs.
local OF_IDS = set_of "Hashing HashedCrossing IntegerLookup StringLookup TextVectorization"
-- Fields that an object has once it is built.
local BUILT = set_of [[kernel bias gamma beta embeddings moving_mean moving_variance input output reverse_embeddings query_dense key_dense
  value_dense output_dense]]

local function find(path)
  local value = flow.keras
  for part in path:gmatch "[^.]+" do value = value[part] end
  return value
end

local function make(value)
  if type(value) ~= "table" then return value end
  local made = {}
  for key, entry in pairs(value) do
    if key ~= "$" then made[key] = make(entry) end
  end
  return value["$"] and find(value["$"])(made) or made
end

local function equal(a, b)
  if type(a) == "number" and type(b) == "number" then return math.abs(a - b) <= 1e-6 * math.max(1, math.abs(a)) end
  if type(a) ~= "table" or type(b) ~= "table" then return a == b end
  for i = 1, math.max(#a, #b) do
    if not equal(a[i], b[i]) then return false end
  end
  return true
end

-- What is said of one object: names that it lacks, and other values.
local function differences(line, found)
  local library, class = line.path:match "^(.*)%.(%w+)$"
  local missing, of_class = MISSING[library] or {}, MISSING[line.path] or {}
  if class:find "^ConvLSTM" then line.fields.state_size, line.fields.single_state = nil, nil end      -- of the cell
  local one = next(line.arguments) and find(line.path)(make(line.arguments)) or find(line.path)()
  for _, name in ipairs(line.methods) do
    local ok, value = pcall(function() return one[name] end)
    if not ok and not missing[name] and not of_class[name] then found[#found + 1] = line.path .. ":" .. name
    elseif ok and type(value) ~= "function" and not name:find "activation$" then      -- which are names
      found[#found + 1] = line.path .. ": is not the method " .. name
    end
  end
  for name, expected in pairs(line.fields) do
    local ok, value = pcall(function() return one[name] end)
    if expected == "None" then expected = nil end
    if value == false and expected == nil or value == json.null then value = nil end
    if not ok then
      if not (missing[name] or of_class[name] or BUILT[name]) then found[#found + 1] = line.path .. "." .. name end
    elseif expected ~= json.null and expected ~= false and not (OTHERS[name] or OF_IDS[class] and name:find "dtype$")
      and not equal(expected, value) then
      found[#found + 1] = ("%s.%s: %s for %s"):format(line.path, name, tostring(value), tostring(expected))
    end
  end
end

describe("objects have the fields and methods of Keras'", function()
  it("for every class", function()
    local found, count = {}, 0
    for text in io.lines(folder .. "attributes.txt") do
      local line = json.decode(text)
      differences(line, found)
      count = count + 1
    end
    table.sort(found)
    assert.equal("", table.concat(found, "\n"))
    assert.is_true(count >= 240, count)
  end)
end)
