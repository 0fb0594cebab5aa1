-- token_counts.lua: what adapt() of layers with a vocabulary learns of data: its tokens and how often they come.

local native = require "flow.ffi"
local tensor = require "flow.tensor"
local strings = require "flow.tensor.strings"
local passes = require "flow.tensor.passes"

local C, check = native.C, native.check
local counts_out = native.out("flow_token_counts")

-- Calls f(flow_strings) for each batch of what adapt was given.
local function each_batch(self, is_text, data, steps, f)
  if passes.is_dataset(data) then
    local pass, done = passes.adapt(rawget(self, "_holder") or self, data, steps, true), 0
    while done < (steps or math.huge) do
      check(pass:_pull())
      if pass._element.count == 0 then break end
      local view = native.new("flow_strings")
      view.values, view.is_text = pass._element.tensors[0], pass._is_text[1] and 1 or 0
      self:_need(is_text and "strings" or "whole numbers", (view.is_text == 1) == is_text, data._specs[1].dtype)
      f(view)
      done = done + 1
    end
    pass:close()
    return
  end
  local value = data
  if strings.are(value) then value = type(value) == "string" and strings.of({ value }, { 1 }) or strings.tensor("adapt", value)
  elseif not native.is_tensor(value) then value = tensor.tensor(value, { dtype = not is_text and "int64" or nil, device = "cpu" }) end
  self:_need(is_text and "strings" or "whole numbers", strings.is(value) == is_text, value.dtype)
  if #value.shape == 1 then value = value:reshape { -1, 1 } end
  local view, kept = strings.view("adapt", value)
  native.keep(kept)
  f(view)
end

-- The tokens that were counted, the most frequent first, up to max_tokens, without the special ones; and in how many documents each was.
-- first: how many special tokens come before them. Sizes: offsets has an entry more than there are tokens.
local function read_counts(self, is_text, counts, first)
  local values, offsets, times, documents = native.out("flow_tensor"), native.out("flow_tensor"), native.out("flow_tensor"),
    native.out("flow_tensor")
  check(C.flow_token_counts_sorted(counts, is_text and 0 or 1, values, offsets, times, documents))
  local bytes, starts = native.tensor(values[0]), native.tensor(offsets[0])
  local with = native.tensor(documents[0])
  native.tensor(times[0]):close()
  local text, at, seen = native.cast("const char *", C.flow_tensor_data(native.pointer(bytes))), native.data(starts), native.data(with)
  local tokens, in_documents = {}, {}
  local most = self._given.max_tokens and self._given.max_tokens - first or math.huge
  for i = 0, starts.size - 2 do
    local token = self._kind.value(native.string(text + at[i], tonumber(at[i + 1] - at[i])))
    if #tokens >= most then break end
    if token ~= self._given.mask_token and token ~= self._given.oov_token then
      tokens[#tokens + 1], in_documents[#tokens + 1] = token, tonumber(seen[i])
    end
  end
  return tokens, in_documents
end

-- The tokens of data (a Dataset, a list, a tensor) from the most frequent on, as many as the layer takes, in how many documents each is,
-- and the number of documents. first: the number of the first token.
return function(self, data, steps, first)
  local is_text = self._kind.dtype == "string"
  check(C.flow_token_counts_new(counts_out))
  local counts = native.own(counts_out, C.flow_token_counts_release)
  local handle = self:_lookup("int64", true)
  each_batch(self, is_text, data, steps, function(view) check(C.flow_token_counts_add(counts, handle, view)) end)
  local tokens, in_documents = read_counts(self, is_text, counts, first)
  return tokens, in_documents, C.flow_token_counts_documents(counts)
end
