import time, sys, torch, json, itertools
from benchmarks import gpu_training as T, gpu
from benchmarks.gpu_profile import profiled_epoch
from rankpolicy.kernels.triton import race as R, relu_network as N
from rankpolicy.metrics import parse_metric
from rankpolicy.policies.race import COARSE

def say(*a): print(*a, flush=True)
T0=time.perf_counter()
yahoo=T.data(19_944,24,700)
def show(tag, fits, steps):
    p=profiled_epoch(fits)
    say(f"PROFILE {tag}: launches/step {p['launches']/steps:.1f} busy {p['busy_us']/steps:.1f} us/step products {p['share_of_products']:.2f} copies {p['share_of_copies']:.2f}")
    for name,(n,t) in list(p["kernels"].items())[:14]: say(f"   {t/steps:7.2f} us {n/steps:5.2f} x {name[:70]}")
def fits(n, **o): return [T.new_fit(yahoo, learning_rate=1e-3*(1+k/64), **o) for k in range(n)]
for r in (T.epoch("one", yahoo, goal=.045), T.epoch("32", yahoo, num_policies=32, goal=.16)): say(json.dumps(r))
try:
    show("one", fits(1), 312); show("32", fits(32), 312)
except Exception as e: say("profile failed", repr(e)[:300])
say("t", time.perf_counter()-T0)
# race variants
def timed(f):
    try: return gpu.microseconds(gpu.captured(f))
    except Exception as e: return repr(e)[:60]
for nq,n in ((64,24),(2048,24),(64,120),(64,1000)):
    gpu.NUM_QUERIES=nq
    scores,labels,mask=gpu.batch(n)
    ((w,v),)=parse_metric("ndcg@10").additive_forms(labels,mask); w=w[:10].contiguous()
    out=[]
    for seg,nodes in ((1,32),(2,32),(4,32),(4,64),(2,64)):
        R._SEGMENT,R._NODES=seg,nodes
        t=timed(lambda: R.race(scores,mask,w,v,quadrature=COARSE,up_to="gradient").gradient)
        out.append(f"S{seg}N{nodes} {t if isinstance(t,str) else round(t,1)}")
    R._SEGMENT,R._NODES=4,32
    say("RACE",nq,n,*out, "t", round(time.perf_counter()-T0))
# network variants
VARIANTS=(("tf32x3",4,(64,32),32,32,64),("tf32",4,(64,32),32,32,64),("tf32x3",8,(128,64),32,32,64),("tf32x3",4,(64,32),64,64,64),("tf32x3",4,(64,32),32,64,128),("tf32",8,(128,64),64,32,128),("tf32x3",4,(32,),32,32,32),("ieee",4,(64,32),32,32,64))
for prec,warps,blocks,inputs,R_,C in VARIANTS:
    for members in (1,32):
        if time.perf_counter()-T0>110: break
        g=torch.Generator("cuda").manual_seed(0)
        layout=N.Layout(members,700,(64,64))
        flat=torch.randn(layout.size,generator=g,device="cuda")*.05
        rows=torch.randint(len(yahoo.labels),(1,1536),generator=g,device="cuda")
        slope=torch.randn(members,1536,generator=g,device="cuda")
        x64=yahoo.features[rows[0]].double()
        N._PRECISION,N._WARPS,N._ROW_BLOCKS,N._INPUTS,N._ROWS,N._COLUMNS=prec,warps,blocks,inputs,R_,C
        fwd=timed(lambda: N.relu_scores(flat,yahoo.features,rows,layout))
        try: s,acts=N.relu_scores(flat,yahoo.features,rows,layout)
        except Exception as e:
            say("NET",members,prec,warps,blocks,inputs,repr(e)[:80]); continue
        bwd=timed(lambda: N.relu_gradient(slope,flat,yahoo.features,rows,layout,activations=acts))
        w1=flat[:64*700].view(64,700).double(); ref=(x64@w1.T+flat[layout.first_size:layout.first_size+64].double()).relu()
        err=((acts[0][0].double()-ref).norm()/ref.norm()).item()
        say("NET",members,prec,"w",warps,"rows",blocks,"in",inputs,"R",R_,"C",C,"fwd",fwd,"bwd",bwd,f"err {err:.1e}","t",round(time.perf_counter()-T0))
