-- events_spec.lua: event files hold, byte for byte, the summaries that TensorFlow writes; TensorBoard read them (events.py).
local support = require "spec.support.init"
local flow = require "flow"
local messages = require "spec.support.protobuf"
local field, fields = messages.field, messages.fields
local make = require "spec.golden.events_made"
local expected = require "spec.golden.events"

local function records(folder)
  local path = flow.io.glob(folder .. "/events.out.tfevents.*")[1]
  local list = {}
  for record in flow.data.TFRecordDataset { path }:iter() do list[#list + 1] = record end      -- checks the checksums
  return list, path
end

-- The pixels of an image summary, one picture after the other, and its first two texts: width and height.
local function pixels_of(value, color_mode)
  local texts, bytes = {}, {}
  for _, each in ipairs(fields(field(value, 8))) do
    if each.number == 8 then texts[#texts + 1] = each.value end
  end
  for i = 3, #texts do
    local picture = flow.image.decode(texts[i], { color_mode = color_mode })
    for _, pixel in ipairs(picture:reshape { -1 }:totable()) do bytes[#bytes + 1] = string.char(pixel) end
  end
  return table.concat(bytes), texts[1], texts[2]
end

describe("Event files", function()
  local folder = support.file("empty", ""):match("^(.*)/") .. "/logs/run"
  make(folder)
  local found, path = records(folder)

  it("have TensorFlow's names and begin with the version", function()
    assert.truthy(path:match("/events%.out%.tfevents%.%d%d%d%d%d%d%d%d%d%d%..+%.%d+%.%d+%.v2$"), path)
    assert.equal("brain.Event:2", field(found[1], 3))
    assert.equal(#expected + 1, #found)
  end)

  it("hold the bytes that TensorFlow writes", function()
    for i, case in ipairs(expected) do
      local step, tag, plugin, content = unpack(case)
      local event = found[i + 1]
      local value = field(field(event, 5), 1)
      assert.equal(step, field(event, 2) or 0)
      if plugin == "images" then
        local pixels, width, height = pixels_of(value, tag == "grey" and "grayscale" or "rgb")
        assert.equal(content, pixels, tag)
        assert.same({ "4", "3" }, { width, height })
      elseif tag ~= "not a number" then
        assert.equal(content, value, tag)
      end
    end
  end)

  it("are whole records at every moment", function()
    local logs = support.file("empty", ""):match("^(.*)/") .. "/logs"
    do
      local writer = flow.summary.create_file_writer(logs)
      assert.equal(1, #records(logs))
      for step = 1, 9 do writer:scalar("loss", step, step) end
      assert.equal(1, #records(logs))
      writer:scalar("loss", 10, 10)
      assert.equal(11, #records(logs))
      writer:scalar("loss", 11, 11)
      writer:flush()
      assert.equal(12, #records(logs))
      writer:scalar("loss", 12, 12)
    end
    collectgarbage()
    collectgarbage()
    assert.equal(13, #records(logs))
  end)

  it("name what they were given wrongly", function()
    local writer = flow.summary.create_file_writer(folder .. "/other")
    assert.truthy(support.message_of(function() writer:scalar("", 1, 1) end):find("the tag is a text", 1, true))
    assert.truthy(support.message_of(function() writer:scalar("a", "x", 1) end):find('the value of "a" is a number', 1, true))
    assert.truthy(support.message_of(function() writer:scalar("a", 1, 1.5) end):find("a step is a whole number, got 1.5", 1, true))
    assert.truthy(support.message_of(function() writer:scalar("a", 1) end):find('the step of "a" is a number, got nil', 1, true))
    assert.truthy(support.message_of(function() writer:image("a", flow.zeros { 2, 3, 2 }, 1) end):find("1, 3 or 4", 1, true))
    local message = support.message_of(function() writer:histogram("a", { 1 }, 1, { buckets = 0 }) end)
    assert.truthy(message:find("from 1, got the number 0", 1, true))
    writer:close()
    writer:close()
    assert.truthy(support.message_of(function() writer:flush() end):find("was closed", 1, true))
    assert.truthy(support.message_of(function() flow.summary.create_file_writer("/dev/null/x") end):find("/dev/null", 1, true))
  end)
end)
