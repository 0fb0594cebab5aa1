-- byte_pairs_spec.lua: flow.text.Tokenizer gives the ids, offsets and texts that Hugging Face's library gives (byte_pairs.py).
require "spec.support.init"
local flow = require "flow"
local json = require "flow.json"

local golden = json.decode(flow.io.read_file "spec/golden/byte_pairs.json")
local Tokenizer = flow.text.Tokenizer

local function offsets_of(encoded)
  local list = {}
  for i, span in ipairs(encoded.offsets) do list[i] = span[1] .. " " .. span[2] end
  return table.concat(list, " ")
end

local function ids_of(encoded) return table.concat(encoded.ids, " ") end

describe("flow.text.Tokenizer", function()
  for _, family in ipairs(golden.families) do
    local tok = Tokenizer.from_string(family.file)

    it("encodes and decodes as tokenizers of the family " .. family.name, function()
      for i, case in ipairs(family.cases) do
        local text = golden.texts[i]
        local encoded = tok:encode(text)
        assert.equal(case.ids, ids_of(encoded), ("ids of %q"):format(text))
        assert.equal(case.offsets, offsets_of(encoded), ("offsets of %q"):format(text))
        assert.equal(case.ids, table.concat(tok:tokenize(text):totable(), " "))
        local decoded = case.decoded or text
        assert.equal(decoded, tok:decode(encoded.ids), ("decoded %q"):format(text))
        assert.equal(case.whole or decoded, tok:decode(encoded.ids, { skip_special_tokens = false }))
      end
    end)

    it("encodes pairs and cuts them as tokenizers of the family " .. family.name, function()
      local first, second, pair = golden.corpus[1], golden.corpus[2], family.pair
      local encoded = tok:encode(first, { pair = second })
      assert.equal(pair.ids, ids_of(encoded))
      assert.equal(pair.type_ids, table.concat(encoded.type_ids, " "))
      assert.equal(pair.short, ids_of(tok:encode(first, { pair = second, max_length = 9 })))
      assert.equal(pair.single, ids_of(tok:encode(first, { max_length = 9 })))
      assert.equal(pair.plain, ids_of(tok:encode(first, { add_special_tokens = false })))
    end)
  end

  it("learns the ids and merges that BpeTrainer learns", function()
    for _, case in ipairs(golden.trained) do
      local options = case.options
      local tok = Tokenizer.train(golden.corpus, { vocabulary_size = options.vocab_size, min_frequency = options.min_frequency,
        special_tokens = options.special_tokens, max_token_length = options.max_token_length })
      local tokens = {}
      for id = 0, tok:vocabulary_size() - 1 do tokens[id + 1] = tok:id_to_token(id) end
      assert.same(case.tokens, tokens)
      assert.same(case.merges, json.decode(tok:to_string()).model.merges)
    end
  end)
end)
