tok = load_tokenizer("qra-7b")
tok.padding_side = "right"
tok.pad_token = tok.eos_token


def to_text(row):
    msgs = [{"role": "user", "content": row["q"]}, {"role": "assistant", "content": row["a"]}]
    return {"text": tok.apply_chat_template(msgs, tokenize=False)}


ds = ds.map(to_text)
collator = DataCollatorForLanguageModeling(tok, mlm=False)
