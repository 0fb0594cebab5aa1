-- texts.lua: what is said of each public function beside what it takes: one sentence and an example that runs. What it takes is above
-- the function itself (signature.lua) or in its record in C; these texts are in the files of reference/texts, read when somebody asks.
--
-- A line that begins a record has a name and a sentence, the indented lines after it are the example, which finds `flow` and `layers`:
--
--   flow.zeros: A tensor of zeros in a shape.
--     print(flow.zeros { 2, 3 })
--
-- "--> text" at the end of a line of an example is what it prints. Without a sentence the record in C says it. A record CLASS (NAME) of a
-- module serves the names that begin with a capital (small) letter and have no record or no example of their own: in its lines CLASS or
-- NAME stands for the name, SUMMARY for what the loss of this class computes. Operations whose doc in C is enough need no record.

local native = require "flow.ffi"
local names = require "flow.names"

local C = native.C
local texts = {}

local FILES = { "tensors", "pictures", "layers", "training", "callbacks", "keras", "data", "distribute", "applications", "fields",
                "elements", "computations", "as_in_keras", "tokenizers" }

local records      -- by name: { doc =, example = }

-- The records of a text, added to `found`; raises for a name that has one already.
function texts.parse(text, found)
  local record
  for line in text:gmatch("[^\n]*") do
    local name, doc = line:match("^(%S+):%s*(.*)$")
    if name then
      if found[name] then error("reference: " .. name .. " has two records") end
      record = { doc = doc ~= "" and doc or nil, example = nil }
      found[name] = record
    elseif line:find("^  ") then
      record.example = (record.example and record.example .. "\n" or "") .. line:sub(3)
    end
  end
  return found
end

local function all()
  if not records then
    records = {}
    for _, file in ipairs(FILES) do texts.parse(require("flow.reference.texts." .. file), records) end
  end
  return records
end

local function sentence(text)
  text = text:sub(1, 1):upper() .. text:sub(2)
  return text:find("[.!?]$") and text or text .. "."
end

-- What the library's record says: of a layer, or of an elementwise operation or a reduction, whose example is made.
local function from_library(name)
  local layer = name:match("^flow%.layers%.(%w+)$")
  if layer then
    local index = C.flow_layer_class_find(layer)
    return index >= 0 and { doc = native.string(C.flow_layer_class_doc(index)) } or nil
  end
  local op = name:match("^flow%.([%w_]+)$")
  local id = op and C.flow_op_find(op) or -1
  if id < 0 then return nil end
  local inputs = C.flow_op_elementwise(id)
  local doc = sentence(native.string(C.flow_op_doc(id)))
  if inputs == 2 then return { doc = doc, example = ("print(flow.%s(flow.tensor { 1, 2 }, 2))"):format(op) } end
  return { doc = doc, example = ("print(flow.%s(flow.tensor { 0.25, 0.5 }))"):format(op) }
end

-- What the loss of a class, or of a name in snake case, computes.
local function summary(name)
  local class = name:find("^%u") and name or names.camel(name, C.flow_loss_find)
  local record = class and all()["flow.losses." .. class]
  return record and record.doc or name .. "."
end

-- The record that serves all names of the module that have none, for this one.
local function from_template(name)
  local module, own = name:match("^(.*)%.([%w_]+)$")
  if not module then return nil end
  local kind = own:find("^%u") and "CLASS" or "NAME"
  local record = all()[module .. "." .. kind]
  if not record then return nil end
  local function fill(text)
    return text and (text:gsub("%f[%u]" .. kind .. "%f[%U]", own):gsub("SUMMARY", function() return summary(own) end))
  end
  return { doc = fill(record.doc), example = fill(record.example) }
end

-- { doc =, example = } of a name, each of which may be nil.
function texts.of(name)
  local found = { doc = nil, example = nil }
  for _, record in ipairs { all()[name] or false, from_template(name) or false, from_library(name) or false } do
    if record then found.doc, found.example = found.doc or record.doc, found.example or record.example end
  end
  return found
end

-- The names of all records, without those that serve others.
function texts.names()
  local list = {}
  for name in pairs(all()) do
    if not name:find("%.CLASS$") and not name:find("%.NAME$") then list[#list + 1] = name end
  end
  return list
end

return texts
