-- image_dataset.lua: flow.image_dataset_from_directory(directory, options ...): pictures in folders, a folder for each class,
-- as batches of tensors: Keras' keras.utils.image_dataset_from_directory with its options, defaults, order of files and splits.
--
-- Several option tables are merged left to right. Where Keras takes None, false is given: labels = false, batch_size = false.
-- One option more: on_error = "skip" leaves pictures out that cannot be decoded, with one warning each; default "raise".

local native = require "flow.ffi"
local errors = require "flow.errors"
local signature = require "flow.signature"
local image = require "flow.tensor.image"
local directories = require "flow.data.directory"

local C, check, raise = native.C, native.check, errors.raise
local loader = signature.module("flow", {}, nil, true)

local KIND = {
  what = "image_dataset_from_directory", one = "picture", many = "pictures", endings = ".bmp .gif .jpeg .jpg .png",
  formats = "(.bmp, .gif, .jpeg, .jpg, .png)", makes_rows = true, known = { data_format = true },
  defaults = { color_mode = "rgb", image_size = { 256, 256 }, interpolation = "bilinear", crop_to_aspect_ratio = false,
               pad_to_aspect_ratio = false, on_error = "raise" },
}

-- Merged and checked options.
local function read_options(...)
  local what, options = KIND.what, directories.options(KIND, ...)
  directories.check_one_of(options, "color_mode", { "rgb", "rgba", "grayscale" })
  options.height, options.width = image.check_size(what .. ": image_size", options.image_size)
  options.interpolation = image.check_interpolation(what, options.interpolation)
  options.fit = image.check_fit(what, options)
  if options.data_format ~= nil and options.data_format ~= "channels_last" then
    raise("%s: data_format %s is not possible: pictures are {height, width, channels}", what, errors.describe(options.data_format))
  end
  directories.check_one_of(options, "on_error", { "raise", "skip" })
  return options
end

signature.internal(loader).options = read_options

local function_out = native.out("flow_function")

-- A Dataset of (pictures, labels), or of pictures without labels; for subset = "both" a list of two.
signature.takes("directory: path, { labels?, label_mode?, class_names?, color_mode?, batch_size?, image_size?, shuffle?, seed?, "
  .. "validation_split?, subset?, interpolation?, follow_links?, crop_to_aspect_ratio?, pad_to_aspect_ratio?, data_format?, format?, "
  .. "verbose?, on_error? }, more...", true)
function loader.from_directory(...)
  local data, options = require "flow.data", read_options(...)
  return directories.datasets(options, function(dataset, files)
    local classes = options.label_mode == "categorical" and #files.class_names or 0
    check(C.flow_function_load_image(options.height, options.width, image.color_modes[options.color_mode], options.interpolation,
      options.fit, classes, options.on_error == "skip" and 1 or 0, function_out))
    dataset = dataset:map(data.element_function(native.own(function_out, C.flow_function_release)), { num_parallel_calls = data.AUTOTUNE })
    if options.batch_size then dataset = dataset:batch(options.batch_size) end
    return dataset:prefetch(data.AUTOTUNE)
  end)
end

return loader
