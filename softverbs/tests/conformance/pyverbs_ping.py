"""Two connected queue pairs of one process, by pyverbs: a SEND, and a READ of what arrived."""

import pyverbs.enums as e
from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

SIZE = 64
ACCESS = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_READ


class Side:
    def __init__(self, context):
        self.pd = PD(context)
        self.cq = CQ(context, 8)
        self.mr = MR(self.pd, SIZE, ACCESS)
        init = QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=QPCap(4, 4, 1, 1))
        self.attr = QPAttr(port_num=1)
        self.attr.qp_access_flags = ACCESS
        self.qp = QP(self.pd, init, self.attr)

    def connect(self, context, peer):
        route = GlobalRoute(dgid=context.query_gid(1, 0), sgid_index=0)
        self.attr.ah_attr = AHAttr(port_num=1, is_global=1, gr=route)
        self.attr.dest_qp_num = peer.qp.qp_num
        self.attr.path_mtu = e.IBV_MTU_1024
        self.attr.max_rd_atomic = self.attr.max_dest_rd_atomic = 1
        self.attr.min_rnr_timer, self.attr.timeout = 12, 14
        self.attr.retry_cnt = self.attr.rnr_retry = 7
        self.qp.to_rts(self.attr)

    def sge(self):
        return SGE(self.mr.buf, SIZE, self.mr.lkey)

    def await_completion(self):
        while True:
            count, completions = self.cq.poll()
            if count:
                assert completions[0].status == e.IBV_WC_SUCCESS, completions[0].status
                return completions[0]


def main():
    context = Context(name='softverbs0')
    a, b = Side(context), Side(context)
    a.connect(context, b)
    b.connect(context, a)

    b.qp.post_recv(RecvWR(num_sge=1, sg=[b.sge()]))
    a.mr.write('x' * SIZE, SIZE)
    a.qp.post_send(SendWR(opcode=e.IBV_WR_SEND, num_sge=1, sg=[a.sge()]))
    a.await_completion()
    assert b.await_completion().byte_len == SIZE
    assert b.mr.read(SIZE, 0) == b'x' * SIZE

    a.mr.write('-' * SIZE, SIZE)
    read = SendWR(opcode=e.IBV_WR_RDMA_READ, num_sge=1, sg=[a.sge()])
    read.set_wr_rdma(b.mr.rkey, b.mr.buf)
    a.qp.post_send(read)
    a.await_completion()
    assert a.mr.read(SIZE, 0) == b'x' * SIZE
    print('pyverbs: sent and read', SIZE, 'bytes on', context.name)


main()
