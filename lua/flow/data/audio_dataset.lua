-- audio_dataset.lua: flow.audio_dataset_from_directory(directory, options ...): WAVE files in folders, a folder for each class, as
-- batches of float32 {batch, samples, channels}: Keras' keras.utils.audio_dataset_from_directory with its options, defaults, order of files
-- and splits.
--
-- Several option tables are merged left to right. Where Keras takes None, false is given: labels = false, batch_size = false. Without
-- output_sequence_length the sounds of a batch are filled up with zeros to the longest.

local native = require "flow.ffi"
local errors = require "flow.errors"
local signature = require "flow.signature"
local directories = require "flow.data.directory"

local C, check, raise = native.C, native.check, errors.raise
local loader = signature.module("flow", {}, nil, true)

local KIND = { what = "audio_dataset_from_directory", one = "sound", many = "sounds", endings = ".wav", formats = "(.wav)",
               known = { sampling_rate = true, output_sequence_length = true }, defaults = { ragged = false } }

local function_out = native.out("flow_function")

-- A Dataset of (sounds, labels), or of sounds without labels; for subset = "both" a list of two.
signature.takes("directory: path, { labels?, label_mode?, class_names?, batch_size?, sampling_rate?, output_sequence_length?, ragged?, "
  .. "shuffle?, seed?, validation_split?, subset?, follow_links?, format?, verbose? }, more...", true)
function loader.from_directory(...)
  local data, options = require "flow.data", directories.options(KIND, ...)
  local length = options.output_sequence_length
  if length ~= nil and (type(length) ~= "number" or length ~= math.floor(length) or length < 1) then
    raise("%s: output_sequence_length is a whole number of samples from 1, got %s", KIND.what, errors.describe(length))
  end
  if options.sampling_rate then
    raise("%s: sampling_rate is not supported: samples come at the rate of the files, which flow.io.load_wav tells", KIND.what)
  end
  if options.ragged then raise("%s: ragged is not supported: sounds are filled up with zeros", KIND.what) end
  return directories.datasets(options, function(dataset)
    check(C.flow_function_load_wave(length or -1, function_out))
    dataset = dataset:map(data.element_function(native.own(function_out, C.flow_function_release)), { num_parallel_calls = data.AUTOTUNE })
    dataset = dataset:prefetch(data.AUTOTUNE)
    if not options.batch_size then return dataset end
    return length and dataset:batch(options.batch_size) or dataset:padded_batch(options.batch_size)
  end)
end

return loader
