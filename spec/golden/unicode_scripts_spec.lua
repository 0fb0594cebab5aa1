-- unicode_scripts_spec.lua: \p{SCRIPT} in patterns of tokenizers finds what the library tokenizers finds (unicode_scripts.py).
local support = require "spec.support.init"
local flow = require "flow"
local json = require "flow.json"
local unicode = require "flow.text.unicode"

local golden = json.decode(flow.io.read_file "spec/golden/unicode_scripts.json")

-- The pieces of a text without the characters of a script, joined by "|".
local function left(name, text)
  local script, pieces, piece = unicode.script(name), {}, ""
  local function add()
    if piece ~= "" then pieces[#pieces + 1] = piece end
    piece = ""
  end
  for _, value in ipairs(unicode.points(text)) do
    if script[math.floor(value / 256)][value % 256] == 1 then add() else piece = piece .. unicode.encode(value) end
  end
  add()
  return table.concat(pieces, "|")
end

local function tokenizer(pattern)
  return flow.text.Tokenizer.from_string(json.encode {
    version = "1.0", added_tokens = json.list {}, model = { type = "BPE", vocab = { a = 0, ["的"] = 1 }, merges = json.list {} },
    pre_tokenizer = { type = "Split", behavior = "Removed", invert = false, pattern = { Regex = pattern } },
  })
end

-- Without what Unicode 16, which that library and unicode_tables.lua have, does not assign: the ranges are of a later one.
local unassigned = unicode.set { categories = unicode.category "Cn" }
local function assigned(text)
  local kept = {}
  for _, value in ipairs(unicode.points(text)) do
    if unassigned[math.floor(value / 256)][value % 256] ~= 1 then kept[#kept + 1] = unicode.encode(value) end
  end
  return (table.concat(kept):gsub("||+", "|"):gsub("^|", ""):gsub("|$", ""))
end

describe("a script in a pattern", function()
  it("stands for its characters", function()
    for name, expected in pairs(golden.left) do assert.equal(assigned(expected), left(name, assigned(golden.text)), name) end
  end)

  it("is in patterns of files, and refused by name if it is not known", function()
    assert.same({ 0, 0 }, tokenizer "\\p{Han}+":encode("a的a").ids)
    assert.same({ 1 }, tokenizer "\\P{Han}+":encode("a的a").ids)
    assert.matches("\\p{Klingon} is not supported", support.message_of(function() tokenizer "\\p{Klingon}" end), 1, true)
  end)
end)
