-- tokenizer_spec.lua: flow.text.Tokenizer beside what spec/golden/byte_pairs_spec.lua compares: files with mistakes, texts of any bytes,
-- long words, batches, streams, and data sets.
local support = require "spec.support.init"
local flow = require "flow"
local json = require "flow.json"
local case_numbers = require "spec.support.case_numbers"

local Tokenizer = flow.text.Tokenizer

local function file(changes, model)
  local values = { model = { type = "BPE", vocab = { a = 0, b = 1, ab = 2 }, merges = json.list { "a b" } } }
  for name, value in pairs(changes or {}) do values[name] = value end
  for name, value in pairs(model or {}) do values.model[name] = value end
  return json.encode(values)
end

local function message(changes, model)
  local ok, text = pcall(Tokenizer.from_string, type(changes) == "string" and changes or file(changes, model))
  assert.is_false(ok)
  return text
end

local function ids(tok, text, options) return table.concat(tok:encode(text, options).ids, " ") end

describe("a tokenizer's file", function()
  it("is refused with the place of what is wrong", function()
    for _, case in ipairs {
      { "{", "Tokenizer.from_string" }, { "[]", "model is missing" }, { "3", "expected an object" },
      { { model = json.null }, "model is missing" }, { {}, 'the model "Unigram" is not supported', { type = "Unigram" } },
      { {}, "model.dropout is 0.1", { dropout = 0.1 } }, { {}, "model.vocab is missing", { vocab = json.null } },
      { {}, "model.vocab.b is the string \"1\", expected a number", { vocab = { a = 0, b = "1" } } },
      { {}, "have the same id, 1", { vocab = { a = 1, b = 1, ab = 2 } } }, { {}, "expected a whole number from 0", { vocab = { a = -1 } } },
      { {}, "expected a whole number from 0", { vocab = { a = 1e300 } } },
      { {}, "expected a whole number from 0", { vocab = { a = 0.5 } } },
      { {}, "model.merges[2] is the string \"ab\", expected two tokens", { merges = { "a b", "ab" } } },
      { {}, "model.merges[1]: the vocabulary lacks the token \"c\"", { merges = { "a c" } } },
      { {}, "model.merges[1]: the vocabulary lacks the token \"ba\"", { merges = { { "b", "a" } } } },
      { {}, "model.merges is", { merges = "a b" } }, { {}, "model.unk_token is \"?\"", { unk_token = "?" } },
      { { normalizer = { type = "Precompiled" } }, 'the normalizer "Precompiled" is not supported' },
      { { pre_tokenizer = { type = "Sequence", pretokenizers = { { type = "UnicodeScripts" } } } },
        'pre_tokenizer.pretokenizers[1]: the pre-tokenizer "UnicodeScripts"' },
      { { decoder = { type = "CTC" } }, 'the decoder "CTC"' }, { { post_processor = { type = "X" } }, 'the post-processor "X"' },
      { { post_processor = { type = "TemplateProcessing", special_tokens = { s = { ids = { -1 }, tokens = { "s" } } } } },
        "post_processor.special_tokens.s.ids[1] is the number -1, expected a whole number from 0" },
      { { post_processor = { type = "TemplateProcessing", special_tokens = { s = { ids = { 1 }, tokens = { 2 } } } } },
        "post_processor.special_tokens.s.tokens[1] is the number 2, expected a string" },
      { { post_processor = { type = "BertProcessing", cls = { 1, "a" }, sep = { "b", 2 } } },
        "post_processor.cls is a table, expected a list [ token, id ]" },
      { { pre_tokenizer = { type = "Split", behavior = "Isolated", pattern = { Regex = "(?<=ab)c" } } }, "a look behind" },
      { { pre_tokenizer = { type = "Split", behavior = "Isolated", pattern = { Regex = "(a" } } }, "a parenthesis is not closed" },
      { { pre_tokenizer = { type = "Split", behavior = "Cut", pattern = { String = "a" } } },
        "pre_tokenizer.behavior is the string \"Cut\"" },
      { { added_tokens = { { id = 1, content = "x" } } }, "that is the one of \"b\"" },
      { { added_tokens = { { id = 7, content = "b" } } }, "but in the vocabulary it has 1" },
      { { added_tokens = { { id = 7, content = "x" }, { id = 7, content = "y" } } }, "with this id before it" },
      { { added_tokens = { { id = 7, content = "" } } }, "added_tokens[1].content is empty" },
      { { truncation = { max_length = "5" } }, "truncation.max_length is the string \"5\"" },
    } do
      local text = message(case[1], case[3])
      assert.is_truthy(text:find(case[2], 1, true), text)
    end
  end)

  it("may leave ids out, and say a merge twice", function()
    local tok = Tokenizer.from_string(file({}, { vocab = { a = 5, b = 900, ab = 7 }, merges = { "a b", "a b" } }))
    assert.equal(901, tok:vocabulary_size())
    assert.equal("7 5", ids(tok, "aba"))
    assert.is_nil(tok:id_to_token(6))
  end)

  it("is written back as it was read", function()
    local text = file()
    local path = support.path()
    flow.io.write(path, text)
    local tok = Tokenizer.from_file(path)
    tok:save(path)
    assert.equal(text, flow.io.read_file(path))
    os.remove(path)
  end)
end)

local PARTS = { "the", " ", "\n", "é", "狐", "😀", "e\204\129", "\0", "12", "!", "<|x|>", "'s", "\t", "Ab", "\r\n" }

describe("flow.text.Tokenizer", function()
  local tok = Tokenizer.train({ "the fox, the dogs 12 été 狐 😀" }, { vocabulary_size = 280, special_tokens = { "<|x|>" } })

  it("gives random texts back", function()
    local first, last = case_numbers(300)
    for case = first, last do
      math.randomseed(case)
      local parts = {}
      for i = 1, math.random(0, 40) do parts[i] = PARTS[math.random(#PARTS)] end
      local text = table.concat(parts)
      local encoded = tok:encode(text)
      assert.equal(text, tok:decode(encoded.ids, { skip_special_tokens = false }), "case " .. case)
      local stream, given = tok:decode_stream { skip_special_tokens = false }, {}
      for i, id in ipairs(encoded.ids) do given[i] = stream:step(id) end
      assert.equal(text, table.concat(given) .. stream:finish(), "case " .. case)
      for i, span in ipairs(encoded.offsets) do
        assert.is_true(span[1] >= 1 and span[2] <= #text and span[2] >= span[1] - 1, ("case %d, token %d"):format(case, i))
      end
    end
  end)

  it("reads bytes that are not UTF-8 as U+FFFD", function()
    assert.equal("a\239\191\189b\239\191\189", tok:decode(tok:encode("a\255b\228\184").ids))
    assert.same({ { 1, 1 }, { 2, 2 }, { 2, 2 }, { 2, 2 }, { 3, 3 } }, tok:encode("a\255b").offsets)
  end)

  it("holds the bytes of an unfinished character back", function()
    local stream, bytes = tok:decode_stream(), tok:encode("漢").ids
    assert.equal(3, #bytes)
    assert.equal("", stream:step(bytes[1]))
    assert.equal("", stream:step(bytes[2]))
    assert.equal("漢", stream:step(bytes[3]))
    assert.equal("", stream:step(bytes[1]))
    assert.equal("\239\191\189", stream:finish())
    assert.has_error(function() stream:step(100000) end)
    assert.equal("the", stream:step(tok:token_to_id "the"))
  end)

  it("takes long words in time that grows with their length", function()
    local word = ("the"):rep(100000)
    local start = os.clock()
    local encoded = tok:encode(word)
    assert.equal(100000, #encoded.ids)
    assert.is_true(os.clock() - start < 20)
  end)

  it("does not try patterns without end", function()
    local one = Tokenizer.from_string(file { pre_tokenizer = { type = "Split", behavior = "Isolated", pattern = { Regex = "(a+)+c" } } })
    local ok, text = pcall(one.encode, one, ("a"):rep(100))
    assert.is_false(ok)
    assert.matches("^[^:]*tokenizer_spec%.lua:%d+: the regular expression .*too many tries", text)
  end)

  it("reads \\0 in a pattern as the character 0, also if something follows, and no other octal number", function()
    local function split(regex)
      return file { pre_tokenizer = { type = "Split", behavior = "Removed", pattern = { Regex = regex } } }
    end
    assert.equal("0 1", ids(Tokenizer.from_string(split "\\0+"), "a\0\0b"))
    assert.equal("0 1", ids(Tokenizer.from_string(split "[\\0-\\x1f]"), "a\0\31b"))
    assert.is_truthy(message(split "\\012"):find("\\0 is not supported", 1, true))
  end)

  it("makes tensors of batches", function()
    local one = Tokenizer({ a = 0, b = 1, ab = 2 }, { "a b" }, { special_tokens = { "<pad>" } })
    assert.equal(4, one:vocabulary_size())
    local batch = one:encode_batch { "ab", "aab", "" }
    assert.same({ { 2, 3 }, { 0, 2 }, { 3, 3 } }, batch.ids:totable())
    assert.same({ { 1, 0 }, { 1, 1 }, { 0, 0 } }, batch.attention_mask:totable())
    assert.same({ 1, 2, 0 }, batch.lengths:totable())
    assert.equal("int32", batch.ids.dtype)
    local left = one:encode_batch({ "ba" }, { max_length = 4, padding = "max_length", padding_side = "left", pad_id = 9 })
    assert.same({ { 9, 9, 1, 0 } }, left.ids:totable())
    assert.same({ { 2, 1 } }, one:encode_batch({ "babb" }, { max_length = 2, truncation_side = "left" }).ids:totable())
    assert.same({ 0, 0 }, { one:encode_batch({}).ids.shape[1], one:encode_batch({}).ids.shape[2] })
    assert.has_error(function() one:encode_batch({ "a", "ba" }, { padding = false }) end)
    assert.same({ "ab", "aab" }, one:decode(one { "ab", "aab" }):totable())
    assert.same({ 2 }, one("ab"):totable())
    assert.has_error(function() one:decode { 4 } end)
    assert.has_error(function() one:decode { "a" } end)
    assert.has_error(function() one:encode("ab", { max_lenght = 3 }) end)
  end)

  it("is a function of ds:map, and learns from a data set", function()
    local ds = flow.data.Dataset.from_tensor_slices { "the fox", "the", "dogs" }
    local rows = {}
    for batch in ds:map(function(text) return tok(text, { max_length = 4, padding = "max_length" }) end):batch(3):iter() do rows = batch end
    assert.same({ 3, 4 }, { rows.shape[1], rows.shape[2] })
    assert.same({ "the fox", "the", "dogs" }, tok:decode(rows):totable())
    assert.equal(tok:to_string(), Tokenizer.train(flow.data.Dataset.from_tensor_slices { "the fox, the dogs 12 été 狐 😀" },
      { vocabulary_size = 280, special_tokens = { "<|x|>" } }):to_string())
  end)

  it("says where what other libraries call otherwise is", function()
    for name, place in pairs { get_vocab_size = "vocabulary_size", batch_decode = "decode(ids)", detokenize = "decode(ids)" } do
      local ok, text = pcall(function() return tok[name] end)
      assert.is_false(ok)
      assert.is_truthy(text:find(place, 1, true), text)
    end
    assert.error_matches(function() return flow.tokenizers end, "flow.text.Tokenizer reads")
    assert.error_matches(function() return flow.text.BytePairTokenizer end, "Tokenizer.from_file")
  end)

  it("takes special tokens as text on demand", function()
    assert.equal("0", ids(tok, "<|x|>"))
    assert.is_true(#tok:encode("<|x|>", { split_special_tokens = true }).ids > 1)
    assert.equal("", tok:decode { 0 })
  end)
end)
