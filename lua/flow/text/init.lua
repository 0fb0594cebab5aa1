-- init.lua: flow.text: texts as ids for language models.
--
--   local tok = flow.text.Tokenizer.from_file "tokenizer.json"
--
-- The room: tokenizers. May use: tensor.

local signature = require "flow.signature"

return signature.module("flow.text", { Tokenizer = require "flow.text.tokenizer" })
