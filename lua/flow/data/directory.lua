-- directory.lua: files in folders, a folder for each class, as Keras lists, shuffles and splits them: what image_dataset_from_directory,
-- text_dataset_from_directory and audio_dataset_from_directory have in common.
--
-- A kind says what it is about: { what = the function's name, one = "picture", many = "pictures", endings = ".png .jpg", formats = "(.png,
-- .jpg)", defaults = options with its own defaults, known = names of options without one }.
--
-- A call goes through these steps: options() merges and checks tables of options; list() lists, shuffles and splits files; dataset() makes
-- a data set of paths and labels; datasets() lets the kind's function load them. Order, shuffle and split are those of
-- keras/src/utils/dataset_utils.py, so that equal seeds give equal sets.

local native = require "flow.ffi"
local errors = require "flow.errors"
local tensor = require "flow.tensor"
local strings = require "flow.tensor.strings"
local log = require "flow.log"

local C, check, raise = native.C, native.check, errors.raise
local directories = {}

local DEFAULTS = {
  labels = "inferred", label_mode = "int", batch_size = 32, shuffle = true, follow_links = false, format = "tf", verbose = true,
}
local KNOWN = { directory = true, class_names = true, seed = true, validation_split = true, subset = true }

---- options ---------------------------------------------------------------------------------------------------------

-- One table of all options, with the kind's defaults; the directory may be one of them.
local function merge(kind, directory, ...)
  local options, known = { kind = kind }, {}
  for _, list in ipairs { DEFAULTS, kind.defaults } do
    for name, value in pairs(list) do options[name], known[name] = value, true end
  end
  for _, list in ipairs { KNOWN, kind.known } do
    for name in pairs(list) do known[name] = true end
  end
  local tables = { ... }
  if type(directory) == "table" then table.insert(tables, 1, directory) end
  for i = 1, math.max(select("#", ...), #tables) do
    for name, value in pairs(errors.check_options(kind.what, tables[i], known)) do
      errors.check_holes(("%s: %s"):format(kind.what, name), value)
      options[name] = value
    end
  end
  if type(directory) ~= "table" then options.directory = directory end
  return options
end

-- Raises unless an option is one of the allowed texts, or false where or_false says so.
function directories.check_one_of(options, name, allowed, or_false)
  local value = options[name]
  if or_false and value == false then return end
  for _, candidate in ipairs(allowed) do
    if value == candidate then return end
  end
  raise("%s: %s is one of \"%s\"%s; got %s", options.kind.what, name, table.concat(allowed, "\", \""), or_false and " or false" or "",
    errors.describe(value))
end

-- Checks labels, class_names and label_mode; without labels both labels and label_mode become false.
local function check_labels(options)
  local labels = options.labels
  if labels ~= "inferred" and labels ~= false and type(labels) ~= "table" then
    raise("%s: labels is \"inferred\", a list with a label for each %s, or false for no labels; got %s", options.kind.what,
      options.kind.one, errors.describe(labels))
  end
  if options.class_names ~= nil and options.class_names ~= false and labels ~= "inferred" then
    raise("%s: class_names can only be given with labels = \"inferred\"", options.kind.what)
  end
  directories.check_one_of(options, "label_mode", { "int", "categorical", "binary" }, true)
  if labels == false or options.label_mode == false then options.labels, options.label_mode = false, false end
end

-- Checks validation_split, subset and their seed; a split of 0 becomes nil.
local function check_split(options)
  local split, subset = options.validation_split, options.subset
  if split == 0 then split = nil end
  if split and (type(split) ~= "number" or not (split > 0 and split < 1)) then
    raise("%s: validation_split is a number between 0 and 1, got %s", options.kind.what, errors.describe(split))
  end
  if (split or subset) and not (split and subset) then
    raise("%s: if subset is set, validation_split must be set, and inversely", options.kind.what)
  end
  if subset then directories.check_one_of(options, "subset", { "training", "validation", "both" }) end
  if split and options.shuffle and not options.seed then
    raise("%s: a validation_split of shuffled %s needs a seed, so that training and validation do not overlap", options.kind.what,
      options.kind.many)
  end
  options.validation_split, options.subset = split, subset or nil
end

-- Checks batch_size and seed.
local function check_numbers(options)
  local batch_size, seed = options.batch_size, options.seed
  if batch_size ~= false and (type(batch_size) ~= "number" or batch_size < 1 or batch_size ~= math.floor(batch_size)) then
    raise("%s: batch_size is a whole number from 1, or false for single %s; got %s", options.kind.what, options.kind.many,
      errors.describe(batch_size))
  end
  if seed and (type(seed) ~= "number" or seed < 0 or seed > 4294967295 or seed ~= math.floor(seed)) then
    raise("%s: seed is a whole number from 0 to 4294967295, got %s", options.kind.what, errors.describe(seed))
  end
end

-- Merged and checked options of a call.
function directories.options(kind, ...)
  local options = merge(kind, ...)
  options.directory = require("flow.io").path(options.directory, kind.what)
  check_labels(options)
  directories.check_one_of(options, "format", { "tf" })
  check_split(options)
  check_numbers(options)
  options.seed = options.seed or C.flow_context_next_seed(native.context) % 1000000
  return options
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

-- Raises in the name of the function that was called.
local function check_listing(options, status)
  if status ~= 0 then raise("%s: %s", options.kind.what, native.string(C.flow_last_error())) end
end

-- Appends the paths of the files of this kind in a folder and in all folders below it, in Keras' order.
local function list_files(directory, options, into)
  check_listing(options, C.flow_listing_files(directory, options.follow_links and 1 or 0, options.kind.endings, listing_out))
  return names_of(into)
end

-- The names of the classes: all folders, or those that class_names lists, in its order.
local function find_classes(options)
  check_listing(options, C.flow_listing_folders(options.directory, listing_out))
  local found, chosen = names_of {}, options.class_names
  if not chosen then return found end
  local there = {}
  for _, name in ipairs(found) do there[name] = true end
  for _, name in ipairs(chosen) do
    if not there[name] then
      raise("%s: class_names must be folders of %s: expected {%s} or some of them, got {%s}", options.kind.what, options.directory,
        table.concat(found, ", "), table.concat(chosen, ", "))
    end
  end
  return chosen
end

-- As Keras makes them of given labels: each as text, sorted by value.
local function classes_of(what, labels)
  local seen, distinct, names = {}, {}, {}
  for _, label in ipairs(labels) do
    if type(label) ~= "number" or label ~= math.floor(label) then
      raise("%s: a label is a whole number, got %s", what, errors.describe(label))
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

-- Paths, labels from 0 and classes, of a folder for each class.
local function index_by_folder(options)
  local paths, labels, classes = {}, {}, find_classes(options)
  for index, name in ipairs(classes) do
    list_files(join(options.directory, name), options, paths)
    for i = #labels + 1, #paths do labels[i] = index - 1 end
  end
  return paths, labels, classes
end

-- Paths of all files; labels and classes as they were given, nil without labels.
local function index_all(options)
  check_listing(options, C.flow_listing_folders(options.directory, listing_out))     -- for the error of a directory that is not there
  names_of {}
  local paths = list_files(options.directory, options, {})
  if not options.labels then return paths end
  if #options.labels ~= #paths then
    raise("%s: there must be as many labels as %s: %d labels were given, %d %s found in %s", options.kind.what, options.kind.many,
      #options.labels, #paths, options.kind.many, options.directory)
  end
  return paths, options.labels, classes_of(options.kind.what, options.labels)
end

-- A list in another order. order: positions from 0, an array of C.
local function reorder(list, order)
  local sorted = {}
  for i = 1, #list do sorted[i] = list[order[i - 1] + 1] end
  return sorted
end

-- Both lists in the order that NumPy's RandomState(seed).shuffle gives them (flow_shuffle_order).
local function shuffle(paths, labels, seed)
  local order = native.array("int32_t", math.max(#paths, 1))
  check(C.flow_shuffle_order(seed, #paths, order))
  return reorder(paths, order), labels and reorder(labels, order)
end

---- splitting ---------------------------------------------------------------------------------------------------------

-- A part of a list, nil of nil.
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
    log._note("Using %d files for training.\n", n - held_back)
  else
    log._note("Using %d files for validation.\n", held_back)
    first, last = held_back > 0 and n - held_back + 1 or 1, n
  end
  return { paths = cut(files.paths, first, last), labels = cut(files.labels, first, last), class_names = files.class_names,
           reshuffled = files.reshuffled }
end

-- Returns the files; raises if there are none.
local function need_files(files, options, which)
  if #files.paths == 0 then
    local where = options.labels == "inferred" and "; each class is a folder in it, labels = false takes a folder without classes" or ""
    raise("%s: no %s%s found in directory %s. Allowed formats: %s%s", options.kind.what, which, options.kind.many, options.directory,
      options.kind.formats, where)
  end
  return files
end

-- The files of each data set that is asked for: { paths, labels, class_names }. Labels count from 0; nil without labels.
function directories.list(options)
  local paths, labels, classes
  if options.labels == "inferred" then paths, labels, classes = index_by_folder(options)
  else paths, labels, classes = index_all(options) end
  if options.verbose then
    if classes then log._note("Found %d files belonging to %d classes.\n", #paths, #classes)
    else log._note("Found %d files.\n", #paths) end
  end
  if options.shuffle then paths, labels = shuffle(paths, labels, options.seed) end
  if options.label_mode == "binary" and #classes ~= 2 then
    raise("%s: label_mode \"binary\" needs exactly 2 classes, got {%s}", options.kind.what, table.concat(classes, ", "))
  end
  local files = { paths = paths, labels = labels, class_names = classes, reshuffled = options.shuffle }
  if options.subset == "both" then
    local train, validation = split(files, options, "training"), split(files, options, "validation")
    validation.reshuffled = false
    return { need_files(train, options, "training "), need_files(validation, options, "validation ") }
  end
  if options.subset then files = split(files, options, options.subset) end
  return { need_files(files, options, "") }
end

---- data sets ---------------------------------------------------------------------------------------------------------

local KEY = 87654321      -- tf.data's first seed where only the op has one (tensorflow/python/data/util/random_seed.py)

-- Labels as Keras hands them out: int32 numbers, for "binary" float32 {1}; rows of "categorical" where the kind makes none by itself.
local function labels_tensor(files, options)
  local labels = tensor.tensor(files.labels, { dtype = options.label_mode == "binary" and "float32" or "int32", device = "cpu" })
  if options.label_mode == "binary" then return labels:reshape { -1, 1 } end
  if options.label_mode == "categorical" and not options.kind.makes_rows then return labels:one_hot(#files.class_names) end
  return labels
end

-- A Dataset of (path, label), or of paths, in a new order in each pass if it is to be shuffled.
function directories.dataset(files, options)
  local Dataset, internal = require("flow.data").Dataset, require("flow.data")
  local parts = { strings.of(files.paths, { #files.paths }) }
  if options.label_mode then parts[2] = labels_tensor(files, options) end
  local dataset = Dataset.from_tensor_slices(parts)
  if not files.reshuffled then return dataset end
  return internal.stage(dataset, C.flow_dataset_shuffle, 8 * (options.batch_size or 128), KEY, options.seed, 1)
end

-- What a call returns: load(dataset, files) makes batches of paths and labels; for subset = "both" a list of two.
function directories.datasets(options, load)
  local datasets = {}
  for i, files in ipairs(directories.list(options)) do
    local dataset = load(directories.dataset(files, options), files)
    dataset.class_names, dataset.file_paths = files.class_names, files.paths
    datasets[i] = dataset
  end
  if options.subset == "both" then return datasets end
  return datasets[1]
end

return directories
