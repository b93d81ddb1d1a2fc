import torch.nn.functional as F


def kd_loss(student_logits, teacher_logits, temp=1.0):
    p = F.softmax(teacher_logits.float() / temp, dim=-1)
    logq = F.log_softmax(student_logits.float() / temp, dim=-1)
    return -(p * logq).sum(-1).mean()


def total_loss(lm, kd, alpha=0.5):
    return alpha * lm + (1 - alpha) * kd
