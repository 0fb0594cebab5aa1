-- image_dataset.lua: flow.image_dataset_from_directory(directory, options ...): pictures in folders, a folder for each class,
-- as batches of tensors: Keras' keras.utils.image_dataset_from_directory with its options, defaults, order of files and splits.
--
-- Several option tables are merged left to right. Where Keras takes None, false is given: labels = false, batch_size = false.
-- One option more: on_error = "skip" leaves pictures out that cannot be decoded, with one warning each; default "raise".

local native = require "flow.ffi"
local errors = require "flow.errors"
local signature = require "flow.signature"
local image = require "flow.tensor.image"
local log = require "flow.log"

local C, check, raise = native.C, native.check, errors.raise
local WHAT = "image_dataset_from_directory"
local FORMATS = "(.bmp, .gif, .jpeg, .jpg, .png)"
local loader = signature.module("flow", {}, nil, true)

local DEFAULTS = {
  labels = "inferred", label_mode = "int", color_mode = "rgb", batch_size = 32, image_size = { 256, 256 }, shuffle = true,
  interpolation = "bilinear", follow_links = false, crop_to_aspect_ratio = false, pad_to_aspect_ratio = false, format = "tf",
  verbose = true, on_error = "raise",
}
local KNOWN = { directory = true, class_names = true, seed = true, validation_split = true, subset = true, data_format = true }
for name in pairs(DEFAULTS) do KNOWN[name] = true end

---- options ---------------------------------------------------------------------------------------------------------

-- One table of all options, with defaults; the directory may be one of them.
local function merge(directory, ...)
  local options = {}
  for name, value in pairs(DEFAULTS) do options[name] = value end
  local tables = { ... }
  if type(directory) == "table" then table.insert(tables, 1, directory) end
  for i = 1, math.max(select("#", ...), #tables) do
    for name, value in pairs(errors.check_options(WHAT, tables[i], KNOWN)) do options[name] = value end
  end
  if type(directory) ~= "table" then options.directory = directory end
  return options
end

local function check_one_of(options, name, allowed, or_false)
  local value = options[name]
  if or_false and value == false then return end
  for _, candidate in ipairs(allowed) do
    if value == candidate then return end
  end
  raise("%s: %s is one of \"%s\"%s; got %s", WHAT, name, table.concat(allowed, "\", \""), or_false and " or false" or "",
    errors.describe(value))
end

local function check_labels(options)
  local labels = options.labels
  if labels ~= "inferred" and labels ~= false and type(labels) ~= "table" then
    raise("%s: labels is \"inferred\", a list with a label for each picture, or false for no labels; got %s", WHAT, errors.describe(labels))
  end
  if options.class_names ~= nil and options.class_names ~= false and labels ~= "inferred" then
    raise("%s: class_names can only be given with labels = \"inferred\"", WHAT)
  end
  check_one_of(options, "label_mode", { "int", "categorical", "binary" }, true)
  if labels == false or options.label_mode == false then options.labels, options.label_mode = false, false end
end

local function check_split(options)
  local split, subset = options.validation_split, options.subset
  if split == 0 then split = nil end
  if split and (type(split) ~= "number" or not (split > 0 and split < 1)) then
    raise("%s: validation_split is a number between 0 and 1, got %s", WHAT, errors.describe(split))
  end
  if (split or subset) and not (split and subset) then
    raise("%s: if subset is set, validation_split must be set, and inversely", WHAT)
  end
  if subset then check_one_of(options, "subset", { "training", "validation", "both" }) end
  if split and options.shuffle and not options.seed then
    raise("%s: a validation_split of shuffled pictures needs a seed, so that training and validation do not overlap", WHAT)
  end
  options.validation_split, options.subset = split, subset or nil
end

local function check_numbers(options)
  local batch_size, seed = options.batch_size, options.seed
  if batch_size ~= false and (type(batch_size) ~= "number" or batch_size < 1 or batch_size ~= math.floor(batch_size)) then
    raise("%s: batch_size is a whole number from 1, or false for single pictures; got %s", WHAT, errors.describe(batch_size))
  end
  if seed and (type(seed) ~= "number" or seed < 0 or seed > 4294967295 or seed ~= math.floor(seed)) then
    raise("%s: seed is a whole number from 0 to 4294967295, got %s", WHAT, errors.describe(seed))
  end
end

local function check_options(options)
  options.directory = require("flow.io").path(options.directory, WHAT)
  check_labels(options)
  check_one_of(options, "color_mode", { "rgb", "rgba", "grayscale" })
  options.height, options.width = image.check_size(WHAT .. ": image_size", options.image_size)
  options.interpolation = image.check_interpolation(WHAT, options.interpolation)
  options.fit = image.check_fit(WHAT, options)
  check_one_of(options, "format", { "tf" })
  if options.data_format ~= nil and options.data_format ~= "channels_last" then
    raise("%s: data_format %s is not possible: pictures are {height, width, channels}", WHAT, errors.describe(options.data_format))
  end
  check_one_of(options, "on_error", { "raise", "skip" })
  check_split(options)
  check_numbers(options)
  options.seed = options.seed or C.flow_context_next_seed(native.context) % 1000000
end

---- listing ----------------------------------------------------------------------------------------------------------

local listing_out = native.out("flow_listing")

-- The names of a listing, appended to `into`.
local function names_of(into)
  local listing = native.own(listing_out, C.flow_listing_release)
  for i = 0, C.flow_listing_count(listing) - 1 do into[#into + 1] = native.string(C.flow_listing_name(listing, i)) end
  native.close(listing, C.flow_listing_release)
  return into
end

local function join(directory, name) return directory:find("/$") and directory .. name or directory .. "/" .. name end

local function list_pictures(directory, options, into)
  check(C.flow_listing_pictures(directory, options.follow_links and 1 or 0, listing_out))
  return names_of(into)
end

local function find_classes(options)
  check(C.flow_listing_folders(options.directory, listing_out))
  local found, chosen = names_of {}, options.class_names
  if not chosen then return found end
  local there = {}
  for _, name in ipairs(found) do there[name] = true end
  for _, name in ipairs(chosen) do
    if not there[name] then
      raise("%s: class_names must be folders of %s: expected {%s} or some of them, got {%s}", WHAT, options.directory,
        table.concat(found, ", "), table.concat(chosen, ", "))
    end
  end
  return chosen
end

-- As Keras makes them of given labels: each as text, sorted by value.
local function classes_of(labels)
  local seen, distinct, names = {}, {}, {}
  for _, label in ipairs(labels) do
    if type(label) ~= "number" or label ~= math.floor(label) then
      raise("%s: a label is a whole number, got %s", WHAT, errors.describe(label))
    end
    if not seen[label] then
      seen[label] = true
      distinct[#distinct + 1] = label
    end
  end
  table.sort(distinct)
  for i, label in ipairs(distinct) do names[i] = ("%d"):format(label) end
  return names
end

local function index_by_folder(options)
  local paths, labels, classes = {}, {}, find_classes(options)
  for index, name in ipairs(classes) do
    list_pictures(join(options.directory, name), options, paths)
    for i = #labels + 1, #paths do labels[i] = index - 1 end
  end
  return paths, labels, classes
end

local function index_all(options)
  check(C.flow_listing_folders(options.directory, listing_out))     -- for the error of a directory that is not there
  names_of {}
  local paths = list_pictures(options.directory, options, {})
  if not options.labels then return paths end
  if #options.labels ~= #paths then
    raise("%s: there must be as many labels as pictures: %d labels were given, %d pictures found in %s", WHAT, #options.labels, #paths,
      options.directory)
  end
  return paths, options.labels, classes_of(options.labels)
end

local function reorder(list, order)
  local sorted = {}
  for i = 1, #list do sorted[i] = list[order[i - 1] + 1] end
  return sorted
end

local function shuffle(paths, labels, seed)
  local order = native.array("int32_t", math.max(#paths, 1))
  check(C.flow_shuffle_order(seed, #paths, order))
  return reorder(paths, order), labels and reorder(labels, order)
end

---- splitting ---------------------------------------------------------------------------------------------------------

local function cut(list, first, last)
  if not list then return nil end
  local part = {}
  for i = first, last do part[#part + 1] = list[i] end
  return part
end

-- The slices [:-n] and [-n:] of Python, of which n = 0 makes nothing and everything.
local function split(files, options, subset)
  local n = #files.paths
  local held_back = math.floor(options.validation_split * n)
  local first, last = 1, held_back > 0 and n - held_back or 0
  if subset == "training" then
    log.print("Using %d files for training.\n", n - held_back)
  else
    log.print("Using %d files for validation.\n", held_back)
    first, last = held_back > 0 and n - held_back + 1 or 1, n
  end
  return { paths = cut(files.paths, first, last), labels = cut(files.labels, first, last), class_names = files.class_names,
           reshuffled = files.reshuffled }
end

local function need_pictures(files, options, which)
  if #files.paths == 0 then
    raise("%s: no %spictures found in directory %s. Allowed formats: %s", WHAT, which, options.directory, FORMATS)
  end
  return files
end

-- The files of each data set that is asked for: { paths, labels, class_names }. Labels count from 0; nil without labels.
function loader.list(options)
  local paths, labels, classes
  if options.labels == "inferred" then paths, labels, classes = index_by_folder(options)
  else paths, labels, classes = index_all(options) end
  if options.verbose then
    if classes then log.print("Found %d files belonging to %d classes.\n", #paths, #classes)
    else log.print("Found %d files.\n", #paths) end
  end
  if options.shuffle then paths, labels = shuffle(paths, labels, options.seed) end
  if options.label_mode == "binary" and #classes ~= 2 then
    raise("%s: label_mode \"binary\" needs exactly 2 classes, got {%s}", WHAT, table.concat(classes, ", "))
  end
  local files = { paths = paths, labels = labels, class_names = classes, reshuffled = options.shuffle }
  if options.subset == "both" then
    local train, validation = split(files, options, "training"), split(files, options, "validation")
    validation.reshuffled = false
    return { need_pictures(train, options, "training "), need_pictures(validation, options, "validation ") }
  end
  if options.subset then files = split(files, options, options.subset) end
  return { need_pictures(files, options, "") }
end

---- the stream -----------------------------------------------------------------------------------------------------------

local dataset_out, function_out, tensor_out = native.out("flow_dataset"), native.out("flow_function"), native.out("flow_tensor")

local function new_tensor(dtype, shape)
  local dims, rank = native.dims(shape)
  native.try(C.flow_tensor_new, native.dtype(dtype), rank, dims, tensor_out)
  return native.tensor(tensor_out[0])
end

-- A tensor of n numbers value(1) ... value(n).
local function fill_tensor(dtype, shape, n, value)
  local numbers, t = native.array("double", math.max(n, 1)), new_tensor(dtype, shape)
  for i = 1, n do numbers[i - 1] = value(i) end
  check(C.flow_tensor_write(native.pointer(t), numbers, n))
  return t
end

-- Texts as flow_dataset_from_slices takes them: all bytes one after the other, and where each begins and the last ends.
local function pack(texts)
  local all, at = table.concat(texts), 0
  local offsets = fill_tensor("int64", { #texts + 1 }, #texts + 1, function(i)
    if i > 1 then at = at + #texts[i - 1] end
    return at
  end)
  local bytes = new_tensor("uint8", { #all })
  check(C.flow_tensor_borrow(native.cast("void *", native.cast("const char *", all)), native.dtype("uint8"), 1, (native.dims { #all }),
    tensor_out))
  local view = native.tensor(tensor_out[0])
  native.keep(all)      -- whose bytes the view shows
  check(C.flow_tensor_copy(native.pointer(bytes), native.pointer(view)))
  return bytes, offsets
end

-- Keras hands out int32 numbers, for "binary" float32 {1}; the loader makes the rows of "categorical".
local function labels_tensor(labels, mode)
  local function value(i) return labels[i] end
  if mode == "binary" then return fill_tensor("float32", { #labels, 1 }, #labels, value) end
  return fill_tensor("int32", { #labels }, #labels, value)
end

local function slices(files, options)
  local bytes, offsets = pack(files.paths)
  local labels = options.label_mode and labels_tensor(files.labels, options.label_mode)
  local components, starts = native.array("flow_tensor *", 2), native.array("flow_tensor *", 2)
  components[0], starts[0] = native.pointer(bytes), native.pointer(offsets)
  if labels then components[1] = native.pointer(labels) end
  check(C.flow_dataset_from_slices(components, starts, labels and 2 or 1, dataset_out))
  return native.own(dataset_out, C.flow_dataset_release)
end

-- What a constructor makes of a dataset, of which nobody else needs the handle.
local function stage(make, input, ...)
  native.try(make, input, ...)
  local result = native.own(dataset_out, C.flow_dataset_release)
  native.close(input, C.flow_dataset_release)
  return result
end

local KEY = 87654321      -- tf.data's first seed where only the op has one (tensorflow/python/data/util/random_seed.py)

-- The handle of a dataset over these files, as Keras builds it.
function loader.stream(files, options)
  local classes = options.label_mode == "categorical" and #files.class_names or 0
  check(C.flow_function_load_image(options.height, options.width, image.color_modes[options.color_mode], options.interpolation, options.fit,
    classes, options.on_error == "skip" and 1 or 0, function_out))
  local load = native.own(function_out, C.flow_function_release)
  local dataset = slices(files, options)
  if files.reshuffled then
    dataset = stage(C.flow_dataset_shuffle, dataset, 8 * (options.batch_size or 128), KEY, options.seed, 1, dataset_out)
  end
  dataset = stage(C.flow_dataset_map, dataset, load, -1, -1, 0, dataset_out)
  native.close(load, C.flow_function_release)
  if options.batch_size then dataset = stage(C.flow_dataset_batch, dataset, options.batch_size, 0, dataset_out) end
  return stage(C.flow_dataset_prefetch, dataset, -1, dataset_out)
end

-- Merged and checked options: what list takes.
function loader.options(...)
  local options = merge(...)
  check_options(options)
  return options
end

---- the function --------------------------------------------------------------------------------------------------------------

-- A Dataset of (pictures, labels), or of pictures without labels; for subset = "both" a list of two.
signature.takes("directory: path, { labels?, label_mode?, class_names?, color_mode?, batch_size?, image_size?, shuffle?, seed?, "
  .. "validation_split?, subset?, interpolation?, follow_links?, crop_to_aspect_ratio?, pad_to_aspect_ratio?, data_format?, format?, "
  .. "verbose?, on_error? }, more...", true)
function loader.from_directory(...)
  local data, options = require "flow.data", loader.options(...)
  local datasets = {}
  for i, files in ipairs(loader.list(options)) do
    local dataset = data.wrap(loader.stream(files, options))
    dataset.class_names, dataset.file_paths = files.class_names, files.paths
    datasets[i] = dataset
  end
  if options.subset == "both" then return datasets end
  return datasets[1]
end

return loader
