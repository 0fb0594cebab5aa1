-- case_numbers.lua: which cases a generated test tries. FLOW_CASES is their number, FLOW_FIRST_CASE the number of the first, so that many
-- can be tried in parts, and FLOW_CASE that of the only one. Case n is the same in every part.

--- Returns the first number, the last and their count; `default` is the count without FLOW_CASES.
return function(default)
  local only, first = tonumber(os.getenv "FLOW_CASE"), tonumber(os.getenv "FLOW_FIRST_CASE") or 1
  if only then return only, only, 1 end
  local count = tonumber(os.getenv "FLOW_CASES") or default
  return first, first + count - 1, count
end
