-- refused_values_spec.lua: numbers that a dtype does not hold, wrong seeds, sounds that end early and transparent colours are
-- handled as NumPy and TensorFlow do.
local support = require "spec.support.init"
local flow = require "flow"

-- Bytes from hexadecimal digits.
local function bytes_of(text)
  return (text:gsub("%s", ""):gsub("%x%x", function(digits) return string.char(tonumber(digits, 16)) end))
end

describe("a constant of an integer dtype", function()
  it("is a number that the dtype holds", function()
    local constant = flow.initializers.Constant
    assert.same({ 127, 127 }, constant(127)({ 2 }, { dtype = "int8" }):totable())
    for _, given in ipairs { { 200, "int8" }, { -129, "int8" }, { -1, "uint8" }, { 2 ^ 31, "int32" }, { 1 / 0, "int64" } } do
      local message = support.message_of(function() return (constant(given[1])({ 2 }, { dtype = given[2] })) end)
      assert.truthy(message:find("Constant: " .. given[2] .. " holds whole numbers from", 1, true), message)
    end
    assert.truthy(support.message_of(function() return (constant({ 1, 300 })({ 2 }, { dtype = "uint8" })) end)
      :find("uint8 holds whole numbers from 0 to 255, got the number 300", 1, true))
  end)
end)

describe("a SeedGenerator", function()
  it("takes the seeds that other functions take", function()
    assert.equal(2 ^ 53 - 1, flow.random.SeedGenerator(2 ^ 53 - 1).seed)
    assert.truthy(support.message_of(function() flow.random.SeedGenerator(2 ^ 53) end):find("below 2^53", 1, true))
  end)
end)

describe("decode_wav", function()
  it("refuses bytes that end before the samples do, as TensorFlow", function()
    local function number(value, count)
      local text = ""
      for _ = 1, count do text, value = text .. string.char(value % 256), math.floor(value / 256) end
      return text
    end
    local format = number(1, 2) .. number(2, 2) .. number(8000, 4) .. number(32000, 4) .. number(4, 2) .. number(16, 2)
    local whole = "RIFF" .. number(76, 4) .. "WAVEfmt " .. number(16, 4) .. format .. "data" .. number(40, 4) .. ("\1\2"):rep(20)
    assert.same({ 10, 2 }, { unpack(flow.audio.decode_wav(whole).shape) })
    for length = 0, #whole - 1 do
      local ok, problem = pcall(flow.audio.decode_wav, whole:sub(1, length))
      assert.is_false(ok, length)
      assert.truthy(tostring(problem):find("flow.audio.decode_wav: ", 1, true), problem)
    end
  end)
end)

describe("a PNG with a transparent colour", function()
  -- Bytes and expected values of TensorFlow: tf.io.decode_png(bytes, channels = 0).
  it("has no alpha where the number of channels is not given, unless its colours are a palette's", function()
    local pictures = {
      ["89504e470d0a1a0a0000000d4948445200000002000000010800000000d14920560000000274524e53000506f939b70000000b49444154789c6360e5" ..
        "04000016000f0447f1bc0000000049454e44ae426082"] = { channels = 1, 5, 9 },
      ["89504e470d0a1a0a0000000d49484452000000020000000108020000007b40e8dd0000000674524e53000100020003c94babf50000000f4944415478" ..
        "9c636064626661650300003f001621bad4540000000049454e44ae426082"] = { channels = 3, 1, 2, 3, 4, 5, 6 },
      ["89504e470d0a1a0a0000000d4948445200000002000000010803000000c3fc8fb800000006504c544501020304050695536f480000000274524e5300" ..
        "809b2b4e180000000b49444154789c636060040000040002bf7a3f4a0000000049454e44ae426082"] = { channels = 4, 1, 2, 3, 0, 4, 5, 6, 128 },
    }
    for text, expected in pairs(pictures) do
      local picture = flow.image.decode_png(bytes_of(text), 0)
      assert.same({ 1, 2, expected.channels }, { unpack(picture.shape) })
      assert.same({ unpack(expected) }, picture:reshape { -1 }:totable())
    end
  end)
end)
