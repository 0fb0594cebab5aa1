-- audio.lua: flow.audio: sounds in strings, as tf.audio has them; flow.io.load_wav reads files of more kinds.

local native = require "flow.ffi"
local errors = require "flow.errors"
local signature = require "flow.signature"
local tensor = require "flow.tensor"
local ops = require "flow.tensor.ops"

local raise, takes = errors.raise, signature.takes
local audio = signature.module "flow.audio"

local function number_at(bytes, at, count)
  local value = 0
  for i = count - 1, 0, -1 do value = value * 256 + bytes:byte(at + i) end
  return value
end

-- Where the samples of a WAVE file of 16-bit integers begin in its bytes, how many bytes they are, and the bytes of its format.
local function samples_in(bytes)
  local what = "flow.audio.decode_wav"
  if #bytes < 12 or bytes:sub(1, 4) ~= "RIFF" or bytes:sub(9, 12) ~= "WAVE" then
    raise("%s: these are not the contents of a WAVE file", what)
  end
  local at, format = 13, nil
  while at + 7 <= #bytes do
    local name, size = bytes:sub(at, at + 3), number_at(bytes, at + 4, 4)
    if name == "data" and format then
      if size > #bytes - at - 7 then
        raise("%s: the bytes end early: the samples take %.0f bytes, found %.0f", what, size, #bytes - at - 7)
      end
      return at + 8, size, format
    end
    if name == "fmt " then format = bytes:sub(at + 8, at + 7 + size) end
    at = at + 8 + size + size % 2
  end
  raise("%s: the bytes have no samples, or no format before them", what)
end

-- The sound in the contents of a WAVE file, as tf.audio.decode_wav, which takes 16-bit integers: float32 {samples, channels}, values from
-- -1 to below 1, and samples a second. desired_channels and desired_samples: how
-- many, -1 as many as there are; channels that are missing repeat the last one.
takes "contents: string, desired_channels: integer = -1, desired_samples: integer = -1"
function audio.decode_wav(contents, channels, samples)
  local first, size, format = samples_in(contents)
  local whole = #format >= 16
  local coding, there, bits = whole and number_at(format, 1, 2), whole and number_at(format, 3, 2), whole and number_at(format, 15, 2)
  if bits ~= 16 or coding ~= 1 and coding ~= 0xfffe or there < 1 then
    raise("flow.audio.decode_wav: the samples are not integers of 16 bits: flow.io.load_wav(path) reads other ones")
  end
  local count = math.floor(size / (2 * there))
  local sound = tensor.zeros { count, there }
  local from, to = native.cast("const unsigned char *", contents) + (first - 1), native.cast("float *", sound:data())
  for i = 0, count * there - 1 do
    local value = from[2 * i] + 256 * from[2 * i + 1]
    to[i] = (value < 32768 and value or value - 65536) / 32768
  end
  if samples >= 0 and samples < count then sound = sound[{ { 1, samples } }]
  elseif samples > count then sound = ops.pad(sound, { { 0, samples - count }, { 0, 0 } }) end
  local list = { channels >= 1 and channels < there and sound[{ {}, { 1, channels } }] or sound }
  for i = 2, channels - there + 1 do list[i] = sound[{ {}, { there, there } }] end
  return list[2] and ops.concat(list, 2) or list[1]:contiguous(), number_at(format, 5, 4)
end

return audio
