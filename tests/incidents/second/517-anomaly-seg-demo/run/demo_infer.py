import argparse, torch
from models import build_model, MemoryBank
from data import mvtec_loader

p = argparse.ArgumentParser()
p.add_argument("--ckpt")
p.add_argument("--cat")
p.add_argument("--bs", type=int, default=1)
a = p.parse_args()

dev = "cuda"
net = build_model("resnet18", bank=MemoryBank.load(f"banks/{a.cat}.pt")).to(dev)
state = torch.load(a.ckpt, map_location=dev)
print_report(net.load_state_dict(state["net"]))

loader = mvtec_loader(a.cat, split="test", size=256, bs=a.bs, shuffle=False)
for name, img, mask in loader:
    with torch.no_grad():
        logits = net(img.to(dev))
    amap = logits.softmax(1)[:, 1]
    score = amap.flatten(1).topk(100, dim=1).values.mean(1)
    log_scores(name, score, amap, mask)
