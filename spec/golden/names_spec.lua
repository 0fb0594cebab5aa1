-- names_spec.lua: which of Keras' public names (names.lua) are below flow.keras, module by module: none gets lost.
-- flowlua spec/golden/names_spec.lua prints the table with what is missing.
local flow = require "flow"

local folder = debug.getinfo(1, "S").source:match("^@(.*)names_spec%.lua$")
local names = dofile(folder .. "names.lua")

-- The names that flow.keras lacks. All others are there: a class or a function whose line in a table was forgotten is named here. The
-- message for each says what is in its place.
local MISSING = {
  ["applications"] = "EfficientNetV2B0 EfficientNetV2B1 EfficientNetV2B2 EfficientNetV2B3 EfficientNetV2L EfficientNetV2M EfficientNetV2S "
    .. "InceptionResNetV2 NASNetLarge NASNetMobile",
  ["backend"] = "is_keras_tensor result_type standardize_dtype",
  ["config"] = "disable_flash_attention disable_interactive_logging disable_traceback_filtering enable_flash_attention "
    .. "enable_interactive_logging enable_traceback_filtering enable_unsafe_deserialization is_flash_attention_enabled "
    .. "is_interactive_logging_enabled is_nnx_enabled is_traceback_filtering_enabled max_epochs max_steps_per_epoch set_backend "
    .. "set_max_epochs set_max_steps_per_epoch",
  ["distribution"] = "DeviceMesh LayoutMap ModelParallel TensorLayout distribute_tensor initialize",
  ["dtype_policies"] = "AWQDTypePolicy DTypePolicyMap FloatDTypePolicy GPTQDTypePolicy Int4DTypePolicy QuantizedDTypePolicy "
    .. "QuantizedFloat8DTypePolicy deserialize get serialize",
  ["export"] = "ExportArchive",
  ["quantizers"] = "AWQConfig AbsMaxQuantizer Float8QuantizationConfig GPTQConfig Int4QuantizationConfig Int8QuantizationConfig "
    .. "QuantizationConfig Quantizer abs_max_quantize abs_max_quantize_grouped_with_zero_point compute_float8_amax_history "
    .. "compute_float8_scale deserialize fake_quant_with_min_max_vars get pack_int4 quantize_and_dequantize serialize unpack_int4",
  ["saving"] = "KerasFileEditor", ["tree"] = "MAP_TO_NONE lists_to_tuples map_shape_structure",
  ["utils"] = "Config Progbar disable_interactive_logging enable_interactive_logging get_source_inputs is_interactive_logging_enabled "
    .. "model_to_dot",
  ["visualization"] = "draw_bounding_boxes draw_segmentation_masks plot_bounding_box_gallery plot_image_gallery "
    .. "plot_segmentation_mask_gallery",
  ["callbacks"] = "CallbackList OrbaxCheckpoint",
  ["layers"] = "FlaxLayer JaxLayer TFSMLayer TorchModuleWrapper",
  ["ops"] = "eig polar view_as_complex view_as_real",
  ["ops.linalg"] = "eig",
  ["ops.nn"] = "polar",
  ["optimizers"] = "MultiOptimizer OptimizerMap",
}

-- Whether there is such a name, else the message.
local function has(path, name)
  local value = flow.keras
  for part in (path .. "." .. name):gmatch "[^.]+" do
    local ok, found = pcall(function() return value[part] end)
    if not ok or found == nil then return false, tostring(found) end
    value = found
  end
  return true
end

-- The number of names, of those that are there, the list of the others, and of those of which no message says what is in their place.
local function count(path)
  local all, present, missing, unsaid = 0, 0, {}, {}
  for name in names[path]:gmatch "%S+" do
    all = all + 1
    local found, message = has(path, name)
    if found then present = present + 1 else missing[#missing + 1] = name end
    if not found and not message:find '"[%w_]+": ' then unsaid[#unsaid + 1] = name end
  end
  return all, present, missing, unsaid
end

if not describe then
  local paths = {}
  for path in pairs(names) do paths[#paths + 1] = path end
  table.sort(paths)
  for _, path in ipairs(paths) do
    local all, present, missing = count(path)
    print(("%-22s %3d of %3d   %s"):format(path, present, all, table.concat(missing, " ")))
  end
  return
end

require "spec.support.init"
describe("names of Keras", function()
  for path in pairs(names) do
    it("are in flow.keras." .. path, function()
      local all, _, missing, unsaid = count(path)
      assert.is_true(all > 0)
      assert.equal("", table.concat(unsaid, " "))
      assert.equal(MISSING[path] or "", table.concat(missing, " "))
    end)
  end
end)
