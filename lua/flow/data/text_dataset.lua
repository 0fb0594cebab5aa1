-- text_dataset.lua: flow.text_dataset_from_directory(directory, options ...): .txt files in folders, a folder for each class, as batches of
-- strings: Keras' keras.utils.text_dataset_from_directory with its options, defaults, order of files and splits.
--
-- Several option tables are merged left to right. Where Keras takes None, false is given: labels = false, batch_size = false.

local native = require "flow.ffi"
local errors = require "flow.errors"
local signature = require "flow.signature"
local directories = require "flow.data.directory"

local C, check, raise = native.C, native.check, errors.raise
local loader = signature.module("flow", {}, nil, true)

local KIND = { what = "text_dataset_from_directory", one = "text file", many = "text files", endings = ".txt", formats = "(.txt)",
               known = { max_length = true }, defaults = {} }

local function_out = native.out("flow_function")

-- A Dataset of (strings, labels), or of strings without labels; for subset = "both" a list of two. max_length: bytes of each text.
signature.takes("directory: path, { labels?, label_mode?, class_names?, batch_size?, max_length?, shuffle?, seed?, validation_split?, "
  .. "subset?, follow_links?, format?, verbose? }, more...", true)
function loader.from_directory(...)
  local data, options = require "flow.data", directories.options(KIND, ...)
  local most = options.max_length or -1
  if type(most) ~= "number" or most ~= math.floor(most) or most < -1 or most == 0 then
    raise("%s: max_length is a whole number of bytes from 1, got %s", KIND.what, errors.describe(options.max_length))
  end
  return directories.datasets(options, function(dataset)
    check(C.flow_function_load_text(most, function_out))
    dataset = dataset:map(data.element_function(native.own(function_out, C.flow_function_release)), { num_parallel_calls = data.AUTOTUNE })
    if options.batch_size then dataset = dataset:batch(options.batch_size) end
    return dataset:prefetch(data.AUTOTUNE)
  end)
end

return loader
