/*
 * The handoff protocol in Promela, written by hand from docs/HANDOFF.md (guards: docs/REPLAY.md; the wire and the timers: docs/VERIFY.md)
 * and not from the code. Gateway, prefill, decode, a wire that loses, repeats and reorders, page writes that land late.
 *
 * The scope comes from outside, as the explorer's scopes have it: SLOTS, REQUESTS, T0 N0 H0 .. (tenant, pages, hash of each request), PP, DP
 * (pages of each pool), LIMIT, RETRIES, ABORTS, LOSSES, REPEATS, PCRASHES, DCRASHES (0 or 1 each), ABANDONS, HANDLES, TEARS, PREFIXES, WIRE.
 * -DFAULT_x switches a fault on, -DOFF_x a guard off. -DHARM: only harm counts. -DLIVE: timers ring only when nothing else can happen, in
 * turn, so that a circle without an end is one that nothing leads out of; together with the never claim.
 */
#ifdef OFF_admission
#define G_admission 0
#else
#define G_admission 1
#endif
#ifdef OFF_salt
#define G_salt 0
#else
#define G_salt 1
#endif
#ifdef OFF_rejection
#define G_rejection 0
#else
#define G_rejection 1
#endif
#ifdef OFF_lease
#define G_lease 0
#else
#define G_lease 1
#endif
#ifdef OFF_count
#define G_count 0
#else
#define G_count 1
#endif
#ifdef OFF_checksum
#define G_checksum 0
#else
#define G_checksum 1
#endif
#ifdef OFF_tag
#define G_tag 0
#else
#define G_tag 1
#endif
#ifdef OFF_drain
#define G_drain 0
#else
#define G_drain 1
#endif
#ifdef OFF_fence
#define G_fence 0
#else
#define G_fence 1
#endif

/* A fault has its way only while the guard in its place is off. */
#if defined(FAULT_rejected_stays_alive) && defined(OFF_rejection)
#define STAYS_ALIVE 1
#else
#define STAYS_ALIVE 0
#endif
#ifdef FAULT_torn_write
#define TORN 1
#else
#define TORN 0
#endif
#ifdef FAULT_count_unchecked
#define SHORT 1
#else
#define SHORT 0
#endif
#ifdef FAULT_silent_abort
#define SILENT 1
#else
#define SILENT 0
#endif
#if defined(FAULT_reuse_before_drain) && defined(OFF_drain)
#define EARLY 1
#else
#define EARLY 0
#endif
#if defined(FAULT_timeout_authorises_reuse) && defined(OFF_drain)
#define TIMEOUT_FREES 1
#else
#define TIMEOUT_FREES 0
#endif
#if defined(FAULT_room_collision) && defined(OFF_lease)
#define ANY_ROOM 1
#else
#define ANY_ROOM 0
#endif
#if defined(FAULT_stale_handle) && defined(OFF_lease)
#define HANDLE_RULES 1
#else
#define HANDLE_RULES 0
#endif
#ifdef FAULT_retry_keeps_attempt
#define SAME_ATTEMPT 1
#else
#define SAME_ATTEMPT 0
#endif
#if defined(FAULT_unfenced_restart) && defined(OFF_fence)
#define UNFENCED 1
#else
#define UNFENCED 0
#endif
#if defined(FAULT_unannounced_rejection) && defined(OFF_rejection)
#define UNANNOUNCED 1
#else
#define UNANNOUNCED 0
#endif
#if defined(FAULT_unsalted_prefix) && defined(OFF_salt)
#define UNSALTED 1
#else
#define UNSALTED 0
#endif
#if defined(FAULT_prefix_hash_collision) && defined(OFF_salt)
#define COLLIDES 1
#else
#define COLLIDES 0
#endif

#ifndef T1
#define T1 0
#define N1 0
#define H1 0
#endif
#ifndef T2
#define T2 0
#define N2 0
#define H2 0
#endif
#define TENANT(r) ((r) == 0 -> T0 : ((r) == 1 -> T1 : T2))
#define PAGES(r)  ((r) == 0 -> N0 : ((r) == 1 -> N1 : N2))
#define HASH(r)   ((r) == 0 -> H0 : ((r) == 1 -> H1 : H2))
#define LIVES (PCRASHES + 1)

#define gIdle 0
#define gOpen 1
#define gStreaming 2
#define gClosing 3
byte gst[SLOTS], gatt[SLOTS], greq[SLOTS], gtries[SLOTS];
bool gpc[SLOTS], gdc[SLOTS], gagain[SLOTS], grefused[SLOTS];
/* 0 not submitted, 1 open, 2 its one result is told */
byte told[REQUESTS];

#define pIdle 0
#define pWaiting 1
#define pComputing 2
#define pFlushing 3
#define pCompleting 4
#define pStopping 5
byte pst[SLOTS], patt[SLOTS], pn[SLOTS], pk[SLOTS], posted[SLOTS], settled[SLOTS], pcount[SLOTS], pwhy[SLOTS];
bool please[SLOTS];
byte plp[SLOTS * 2], php[SLOTS];
/* 0 free, slot + 1, or 8 + key of a sealed prefix */
byte ppg[PP];

#define dIdle 0
#define dWaiting 1
#define dLeased 2
#define dVerifying 3
#define dDecoding 4
#define dReading 5
#define dDraining 6
byte dst[SLOTS], datt[SLOTS], dn[SLOTS], dreq[SLOTS];
byte dwhy[SLOTS];
bool dread[SLOTS], ddirty[SLOTS], dhandle[SLOTS];
byte dl[SLOTS * 2];
byte dpg[DP];
/* What lies in a page, for whoever holds it now: 1 its tag is its holder's own, 2 its payload is what was written for it. */
byte cont[DP];
#define OWN 3

/* Page writes on the wire, by slot, place and life of prefill: 0 none, else page + 1; STALE: the page went back since. */
#define STALE 16
#define NOWHERE 32
byte wr[SLOTS * 2 * LIVES];
#define W(s, k, life) ((((s) * 2) + (k)) * LIVES + (life))

bit pinc, dinc;
/* News of a restart that has not reached its reader. */
bit pdnG, pdnD, ddnG, ddnP;

int msg[WIRE];
byte nmsg;
byte aborts = ABORTS, losses = LOSSES, repeats = REPEATS, pcrashes = PCRASHES, dcrashes = DCRASHES;
byte abandons = ABANDONS, handles = HANDLES, tears = TEARS;
#ifdef LIVE
byte turn;
#endif
byte ci, cs;
bool ck;

#define START_P 1
#define START_D 2
#define ABORT_P 3
#define ABORT_D 4
#define LEASE 5
#define DRAIN 6
#define COMMITTED 7
#define COMPLETE 8
#define REJECT 9
#define DRAINED 10
#define PCLOSED 11
#define DCLOSED 12
#define STARTED 13
#define FAILING 14
/* kind, slot, attempt, incarnation of prefill and of decode, one more number */
#define M(kind, s, att, ip, id, arg) ((kind) + ((s) * 16) + ((att) * 64) + ((ip) * 512) + ((id) * 1024) + ((arg) * 2048))
/* What each knows of the others' incarnations. */
#define gip (pinc - pdnG)
#define gid (dinc - ddnG)
#define dip (pinc - pdnD)
#define pid_ (dinc - ddnP)
#define fine 0
#define refused 1
#define failed 2
/* for a reason that whoever asked, or the news of a restart, gives */
#define elsewhere 3

hidden int m, tmp;
hidden int outbox[12];
hidden byte outgoing;
hidden byte j, k, a, n, s, kind, x, y, f, need, p, w;
hidden byte ip, id;
hidden int arg;
hidden byte ok;

#define send(message) outbox[outgoing] = (message); outgoing++
/* What a step sends goes onto the wire when the step ends, in the order in which it was said. */
inline put() {
  tmp = outbox[x];
  outbox[x] = 0;
  j = 0;
  do :: (j < nmsg && msg[j] > tmp) -> j++ :: else -> break od;
  if
  :: (j < nmsg && msg[j] == tmp) -> skip /* two equal messages are one */
  :: else ->
    if
    :: nmsg == WIRE -> skip /* one too many is lost */
    :: else ->
      k = nmsg;
      do :: k > j -> msg[k] = msg[k - 1]; k-- :: else -> break od;
      msg[j] = tmp;
      nmsg++
    fi
  fi
}
inline take(i) {
  m = msg[i];
  if :: !ck ->
    k = i;
    do :: k + 1 < nmsg -> msg[k] = msg[k + 1]; k++ :: else -> break od;
    nmsg--;
    msg[nmsg] = 0
  :: else -> ck = false; repeats--
  fi
}

/* ---- decode's pool ---- */
inline freePage(page) {
  assert(dpg[page] > 0 && dpg[page] < 8);
  dpg[page] = 0;
  cont[page] = 0;
  y = 0;
  do
  :: y < SLOTS * 2 * LIVES ->
    if :: (wr[y] == page + 1) ->
#ifndef HARM
      assert(false); /* a write that can still land has a page that its own attempt holds */
#endif
      wr[y] = wr[y] | STALE
    :: else fi;
    y++
  :: else -> break
  od
}
inline closeDecode(sl, why) {
  x = 0;
  do
  :: x < 2 ->
    if :: (dl[sl * 2 + x] && !dhandle[sl] && dpg[dl[sl * 2 + x] - 1] < 8) -> freePage((dl[sl * 2 + x] - 1)) :: else fi;
    dl[sl * 2 + x] = 0;
    x++
  :: else -> break
  od;
  dst[sl] = dIdle; dn[sl] = 0; dread[sl] = false; ddirty[sl] = false; dhandle[sl] = false; dreq[sl] = 0;
  dwhy[sl] = why;
  send(M(DCLOSED, sl, datt[sl], 0, dinc, why))
}
inline drain(sl, why) {
  if
  :: EARLY -> closeDecode(sl, why)
  :: else ->
    dst[sl] = dDraining;
    dwhy[sl] = why;
    if :: (why == failed) -> send(M(FAILING, sl, datt[sl], 0, dinc, 0)) :: else fi;
    send(M(DRAIN, sl, datt[sl], dip, dinc, 0))
  fi
}
#define HELD(sl, pl) (dl[(sl) * 2 + (pl)] - 1)
#define SEALEDFOR(r) (8 + (TENANT(r) - 1) * 2 + (HASH(r) - 1))
#define SEALEDTENANT(key) ((((key) - 8) / 2) + 1)
/* ok: each page of the slot has these bits, a sealed one its own tenant. */
inline look(sl, bits) {
  ok = true;
  x = 0;
  do
  :: x < dn[sl] ->
    if
    :: dl[sl * 2 + x] == 0 -> ok = false
    :: else ->
      if
      :: dpg[HELD(sl, x)] >= 8 -> if :: (SEALEDTENANT(dpg[HELD(sl, x)]) != TENANT(dreq[sl] - 1)) -> ok = false :: else fi
      :: else -> if :: (dhandle[sl] || (cont[HELD(sl, x)] & bits) != bits) -> ok = false :: else fi
      fi
    fi;
    x++
  :: else -> break
  od
}
/* A lease does not name a sealed page. */
#define LEASED(sl, pl) ((dl[(sl) * 2 + (pl)] && dpg[HELD(sl, pl)] < 8) -> dl[(sl) * 2 + (pl)] : 0)
inline sendLease(sl) { send(M(LEASE, sl, datt[sl], dip, dinc, (dn[sl] + 4 * (LEASED(sl, 0) + 8 * LEASED(sl, 1))))) }

/* ---- prefill ---- */
inline freePrefill(sl) {
  x = 0;
  do :: x < PP -> if :: ppg[x] == sl + 1 -> ppg[x] = 0 :: else fi; x++ :: else -> break od;
  pst[sl] = pIdle; pn[sl] = 0; pk[sl] = 0; posted[sl] = 0; settled[sl] = 0; pcount[sl] = 0; please[sl] = false; php[sl] = 0;
  plp[sl * 2] = 0; plp[sl * 2 + 1] = 0
}
inline stopped(sl) {
  freePrefill(sl);
  send(M(DRAINED, sl, patt[sl], pinc, pid_, 0));
  send(M(PCLOSED, sl, patt[sl], pinc, 0, pwhy[sl]))
}
inline stop(sl, why) {
  pwhy[sl] = why;
  pst[sl] = pStopping;
  if :: posted[sl] == settled[sl] -> stopped(sl) :: else fi
}
inline complete(sl) {
  /* its own pages go back now; with prefixes the first is sealed for others of its tenant */
  x = 0;
  ok = PREFIXES && php[sl] == 0;
  do
  :: x < PP -> if :: (ppg[x] == sl + 1) -> ppg[x] = (ok -> SEALEDFOR(greq[sl] - 1) : 0); ok = false :: else fi; x++
  :: else -> break
  od;
  php[sl] = 0;
  pst[sl] = pCompleting;
  send(M(COMPLETE, sl, patt[sl], pinc, pid_, pcount[sl]))
}
inline refuse(sl, att) {
  if
  :: STAYS_ALIVE -> patt[sl] = att; pn[sl] = 1; pst[sl] = pWaiting
  :: else ->
    patt[sl] = att;
    pwhy[sl] = refused;
    send(M(PCLOSED, sl, att, pinc, 0, refused));
    if :: !UNANNOUNCED -> send(M(REJECT, sl, att, pinc, pid_, 0)) :: else fi
  fi
}

/* ---- gateway ---- */
inline tell(sl) {
  assert(told[greq[sl] - 1] == 1); /* at most one result reaches the client */
  told[greq[sl] - 1] = 2
}
inline askClose(sl) {
  if :: !gpc[sl] -> send(M(ABORT_P, sl, gatt[sl], gip, 0, 0)) :: else fi;
  if :: (!gdc[sl] && !(UNANNOUNCED && grefused[sl])) -> send(M(ABORT_D, sl, gatt[sl], 0, gid, 0)) :: else fi
}
inline begin(sl) {
  gst[sl] = gOpen; gpc[sl] = false; gdc[sl] = false; grefused[sl] = false;
  send(M(START_D, sl, gatt[sl], 0, gid, (greq[sl] + 4 * PAGES(greq[sl] - 1))));
  send(M(START_P, sl, gatt[sl], gip, 0, PAGES(greq[sl] - 1)))
}
inline bothClosed(sl) {
  if
  :: (gst[sl] == gClosing && gpc[sl] && gdc[sl]) ->
    if
    :: gagain[sl] ->
      gagain[sl] = false; gtries[sl]++;
      if :: !SAME_ATTEMPT -> gatt[sl]++ :: else fi;
      begin(sl)
    :: else -> gst[sl] = gIdle; greq[sl] = 0; gtries[sl] = 0; gpc[sl] = false; gdc[sl] = false; grefused[sl] = false
    fi
  :: else
  fi
}
inline closeGateway(sl, mayRetry) {
  if
  :: (mayRetry && gst[sl] == gOpen && gtries[sl] < RETRIES) -> gagain[sl] = true
  :: else -> tell(sl)
  fi;
  gst[sl] = gClosing;
  askClose(sl);
  bothClosed(sl)
}

/* ---- one message reaches its receiver ---- */
inline handle() {
  kind = m & 15; s = (m >> 4) & 3; a = (m >> 6) & 7; ip = (m >> 9) & 1; id = (m >> 10) & 1; arg = m >> 11;
  if
  :: kind == START_P && ip == pinc ->
    if
    :: (pst[s] == pIdle && a > patt[s]) ->
      if :: (arg > PP) -> refuse(s, a) :: else -> patt[s] = a; pn[s] = arg; pst[s] = pWaiting fi
    :: (pst[s] == pIdle && a == patt[s]) -> send(M(PCLOSED, s, a, pinc, 0, pwhy[s]))
    :: else
    fi
  :: kind == LEASE && ip == pinc && id == pid_ ->
    n = arg & 3;
    if
    :: (pst[s] == pIdle && a > patt[s]) ->
      if :: (n > PP) -> refuse(s, a) :: else -> patt[s] = a; pn[s] = n; pst[s] = pWaiting fi;
    :: (a < patt[s] || (pst[s] == pIdle && a == patt[s])) ->
      if
      :: (a == patt[s] && pwhy[s] == refused) -> if :: !UNANNOUNCED -> send(M(REJECT, s, a, pinc, pid_, 0)) :: else fi
      :: else -> send(M(DRAINED, s, a, pinc, pid_, 0))
      fi
    :: else
    fi;
    if
    :: (pst[s] == pWaiting && a == patt[s]) -> please[s] = true; plp[s * 2] = (arg >> 2) & 7; plp[s * 2 + 1] = (arg >> 5) & 7
    :: else
    fi
  :: kind == ABORT_P && ip == pinc ->
    if
    :: pst[s] == pIdle ->
      if :: a > patt[s] -> patt[s] = a; pwhy[s] = elsewhere :: else fi;
      send(M(PCLOSED, s, a, pinc, 0, pwhy[s]))
    :: (pst[s] != pIdle && pst[s] != pStopping && a == patt[s]) -> stop(s, elsewhere)
    :: else
    fi
  :: kind == DRAIN && ip == pinc && id == pid_ ->
    if
    :: (pst[s] == pIdle || a < patt[s]) ->
      if :: (a > patt[s]) -> patt[s] = a; pwhy[s] = elsewhere :: else fi;
      send(M(DRAINED, s, a, pinc, pid_, 0))
    :: (pst[s] != pIdle && pst[s] != pStopping && a == patt[s]) -> stop(s, elsewhere)
    :: else
    fi
  :: kind == COMMITTED && ip == pinc && id == pid_ && pst[s] == pCompleting && a == patt[s] ->
    pwhy[s] = fine;
    freePrefill(s);
    send(M(PCLOSED, s, patt[s], pinc, 0, fine))

  :: kind == START_D && id == dinc ->
    if
    :: (dst[s] == dIdle && (a > datt[s] || (SAME_ATTEMPT && !G_lease && a == datt[s]))) ->
      datt[s] = a;
      if
      :: ((arg >> 2) > DP) -> dwhy[s] = refused; send(M(DCLOSED, s, a, 0, dinc, refused))
      :: else -> dn[s] = arg >> 2; dreq[s] = arg & 3; dst[s] = dWaiting
      fi
    :: (dst[s] == dIdle && a == datt[s]) -> send(M(DCLOSED, s, a, 0, dinc, dwhy[s]))
    :: ((dst[s] == dDecoding || dst[s] == dReading) && a == datt[s]) -> send(M(STARTED, s, a, 0, dinc, 0))
    :: (dst[s] == dDraining && a == datt[s]) -> send(M(FAILING, s, a, 0, dinc, 0))
    :: else
    fi
  :: kind == ABORT_D && id == dinc ->
    if
    :: dst[s] == dIdle ->
      if :: a > datt[s] -> datt[s] = a; dwhy[s] = elsewhere :: else fi;
      send(M(DCLOSED, s, a, 0, dinc, dwhy[s]))
    :: ((dst[s] == dLeased || dst[s] == dVerifying) && a == datt[s]) -> drain(s, elsewhere)
    :: ((dst[s] == dWaiting || dst[s] == dDecoding || dst[s] == dReading) && a == datt[s]) -> closeDecode(s, elsewhere)
    :: else
    fi
  :: kind == COMPLETE && id == dinc ->
    if :: ANY_ROOM -> s = cs :: else fi;
    if
    :: (!G_lease || (ip == dip && a == datt[s])) ->
      if
      :: (dst[s] == dLeased) -> if :: (arg == dn[s] || !G_count) -> dst[s] = dVerifying :: else -> drain(s, failed) fi
      :: (dst[s] == dDecoding || dst[s] == dReading) -> send(M(COMMITTED, s, datt[s], dip, dinc, 0))
      :: (dst[s] == dIdle && a == datt[s]) ->
        /* over here: whoever sent it still waits to hear so */
        if
        :: dwhy[s] == fine -> send(M(COMMITTED, s, a, ip, dinc, 0))
        :: else -> send(M(DRAIN, s, a, ip, dinc, 0))
        fi
      :: else
      fi
    :: (G_lease && a < datt[s]) -> send(M(DRAIN, s, a, ip, dinc, 0))
    :: else
    fi
  :: kind == REJECT && id == dinc ->
    if :: ANY_ROOM -> s = cs :: else fi;
    if
    :: ((!G_lease || (ip == dip && a == datt[s])) && (dst[s] == dWaiting || dst[s] == dLeased || dst[s] == dDraining)) ->
      closeDecode(s, refused)
    :: else
    fi
  :: kind == DRAINED && id == dinc ->
    if :: ANY_ROOM -> s = cs :: else fi;
    if
    :: ((!G_lease || (ip == dip && a == datt[s])) && (dst[s] == dLeased || dst[s] == dVerifying || dst[s] == dDraining)) ->
      w = (dst[s] == dDraining -> dwhy[s] : failed); closeDecode(s, w)
    :: else
    fi

  :: kind == PCLOSED && ip == gip && a == gatt[s] && gst[s] != gIdle ->
    gpc[s] = true;
    if :: arg == refused -> grefused[s] = true :: else fi;
    if
    :: (gst[s] == gOpen && (arg == refused || arg == failed)) -> closeGateway(s, false)
    :: else -> bothClosed(s)
    fi
  :: kind == DCLOSED && id == gid && a == gatt[s] && gst[s] != gIdle ->
    gdc[s] = true;
    if
    :: (gst[s] == gOpen || gst[s] == gStreaming) -> closeGateway(s, (arg == elsewhere))
    :: else -> bothClosed(s)
    fi
  :: kind == STARTED && id == gid && a == gatt[s] && gst[s] == gOpen -> gst[s] = gStreaming
  :: kind == FAILING && id == gid && a == gatt[s] && (gst[s] == gOpen || gst[s] == gStreaming) -> closeGateway(s, false)
  :: else /* under another attempt or incarnation: nothing */
  fi
}

/* ---- free pages ---- */
#define DFREE ((dpg[0] == 0) DF1 DF2 DF3)
#if DP > 1
#define DF1 + (dpg[1] == 0)
#else
#define DF1
#endif
#if DP > 2
#define DF2 + (dpg[2] == 0)
#else
#define DF2
#endif
#if DP > 3
#define DF3 + (dpg[3] == 0)
#else
#define DF3
#endif
#define PFREE ((ppg[0] == 0) PF1 PF2)
#if PP > 1
#define PF1 + (ppg[1] == 0)
#else
#define PF1
#endif
#if PP > 2
#define PF2 + (ppg[2] == 0)
#else
#define PF2
#endif

#define canAdmitD(s) (dst[s] == dWaiting && DFREE + (dl[(s) * 2] > 0) >= dn[s])
#define canAdmitP(s) (pst[s] == pWaiting && please[s] && PFREE + (php[s] > 0) >= pn[s])
#define mustLetGoP(s) (pst[s] == pWaiting && php[s] > 0 && PFREE + 1 < pn[s])
#define mustLetGoD(s) (dst[s] == dWaiting && dl[(s) * 2] > 0 && DFREE + 1 < dn[s])
#define canHit(sl, key) ((key) >= 8 && (COLLIDES || (UNSALTED && (((key) - 8) & 1) + 1 == HASH(dreq[sl] - 1)) || (key) == SEALEDFOR(dreq[sl] - 1)))
#define canHitP(sl, key) ((key) >= 8 && greq[sl] && (COLLIDES || (UNSALTED && (((key) - 8) & 1) + 1 == HASH(greq[sl] - 1)) || (key) == SEALEDFOR(greq[sl] - 1)))
#define busyD(s) (canAdmitD(s) || mustLetGoD(s) || dst[s] == dVerifying || dst[s] == dDecoding || dst[s] == dReading)
#define busyP(s) (canAdmitP(s) || mustLetGoP(s) || pst[s] == pComputing)
#define flying(s) (wr[W(s, 0, 0)] || wr[W(s, 1, 0)] || wr[W(s, 0, LIVES - 1)] || wr[W(s, 1, LIVES - 1)])
#define idleSlot(s) (gst[s] == gIdle && pst[s] == pIdle && dst[s] == dIdle && !flying(s))
#if SLOTS == 1
#define ANY(what) (what(0))
#define ALL(what) (what(0))
#else
#define ANY(what) (what(0) || what(1))
#define ALL(what) (what(0) && what(1))
#endif
#define news (pdnG || pdnD || ddnG || ddnP)
#define SETTLED (ALL(idleSlot))
#define LISTED(page) (dl[0] == page + 1 || dl[SLOTS * 2 - 2] == page + 1)
#if PREFIXES
#define EVICTABLE ((dpg[0] >= 8 && !LISTED(0)) || (dpg[DP - 1] >= 8 && !LISTED((DP - 1))) || (ppg[0] >= 8 && php[0] != 1 && php[SLOTS - 1] != 1))
#else
#define EVICTABLE false
#endif
#ifdef LIVE
#define RING(who) (nmsg == 0 && !EVICTABLE && !news && !ANY(busyD) && !ANY(busyP) && !ANY(flying) && turn == who)
#else
#define RING(who) (nmsg == 0)
#endif

/* ---- what always holds ---- */
inline inv() {
  x = 0;
  do :: x < outgoing -> put(); x++ :: else -> break od;
  outgoing = 0;
#ifndef HARM
  s = 0;
  do
  :: s < SLOTS ->
    assert(settled[s] <= posted[s] && posted[s] <= pn[s]);
    assert(pst[s] != pIdle || (posted[s] == 0 && !please[s]));
    assert(dst[s] != dIdle || (dl[s * 2] == 0 && dl[s * 2 + 1] == 0));
    assert(!(dst[s] >= dLeased) || (dl[s * 2] > 0 && (dn[s] < 2 || dl[s * 2 + 1] > 0)));
    /* a refused request is decoded nowhere */
    assert(!((dst[s] == dDecoding || dst[s] == dReading) && gst[s] != gIdle && grefused[s] && gatt[s] == datt[s]));
    assert(gst[s] != gClosing || gagain[s] || told[greq[s] - 1] == 2);
    s++
  :: else -> break
  od;
  p = 0;
  do
  :: p < DP ->
    /* a page has one owner, who lists it once; a free one is listed by nobody; a sealed one is read by its tenant only */
    f = 0; s = 0;
    do
    :: s < SLOTS * 2 ->
      if
      :: (dl[s] == p + 1) ->
        f++;
        assert(dpg[p] == (s / 2) + 1 || (dpg[p] >= 8 && SEALEDTENANT(dpg[p]) == TENANT(dreq[s / 2] - 1)))
      :: else
      fi;
      s++
    :: else -> break
    od;
    assert(dpg[p] >= 8 || (dpg[p] == 0 && f == 0) || (dpg[p] > 0 && f == 1));
    p++
  :: else -> break
  od;
#endif
  skip
}

inline land(index, sl, life, torn) {
  n = wr[index];
  wr[index] = 0;
  if
  :: n & NOWHERE -> skip
  :: n & STALE -> cont[(n & 15) - 1] = 0
  :: else ->
    cont[n - 1] = (torn -> 1 : OWN)
  fi;
  if
  :: life == pinc ->
    settled[sl]++;
    if
    :: (pst[sl] == pFlushing && settled[sl] == posted[sl]) -> complete(sl)
    :: (pst[sl] == pStopping && settled[sl] == posted[sl]) -> stopped(sl)
    :: else
    fi
  :: else
  fi
}
/* Places are written in order by one life, and belong to whom the page is leased to; else the tag is another's. */
inline post(sl, pl) {
  if
  :: plp[sl * 2 + pl] ->
    posted[sl]++;
    n = plp[sl * 2 + pl];
    assert(wr[W(sl, pl, pinc * (LIVES - 1))] == 0);
    if
    :: ddnP -> wr[W(sl, pl, pinc * (LIVES - 1))] = NOWHERE /* for a life of decode that is over */
    :: else ->
      wr[W(sl, pl, pinc * (LIVES - 1))] = ((dl[sl * 2 + pl] == n && datt[sl] == patt[sl]) -> n : (n | STALE));
#ifndef HARM
      assert(dl[sl * 2 + pl] == n && datt[sl] == patt[sl])
#endif
    fi
  :: else
  fi
}
inline chunk(sl) {
  post(sl, pk[sl]);
  pk[sl]++;
  if
  :: (pk[sl] == pn[sl] || SHORT) ->
    pcount[sl] = pk[sl];
    pst[sl] = pFlushing;
    if :: posted[sl] == settled[sl] -> complete(sl) :: else fi
  :: else
  fi
}
inline admitP(sl) {
  need = pn[sl] - (php[sl] > 0);
  x = 0;
  do
  :: (x < PP && need > 0) -> if :: ppg[x] == 0 -> ppg[x] = sl + 1; need-- :: else fi; x++
  :: else -> break
  od;
  pst[sl] = pComputing
}
inline admitD(sl) {
  x = 0;
  y = (dl[sl * 2] > 0);
  do
  :: (x < DP && y < dn[sl]) -> if :: dpg[x] == 0 -> dpg[x] = sl + 1; dl[sl * 2 + y] = x + 1; y++ :: else fi; x++
  :: else -> break
  od;
  dst[sl] = dLeased;
  sendLease(sl)
}
inline verifyD(sl) {
  look(sl, ((G_tag -> 1 : 0) | (G_checksum -> 2 : 0)));
  if
  :: (ok || (!G_tag && !G_checksum)) ->
    dst[sl] = dDecoding;
    send(M(COMMITTED, sl, datt[sl], dip, dinc, 0));
    send(M(STARTED, sl, datt[sl], 0, dinc, 0))
  :: else -> drain(sl, failed)
  fi
}
inline readBegin(sl) {
  look(sl, 1);
  if
  :: (ok || !G_tag) -> dst[sl] = dReading; look(sl, OWN); ddirty[sl] = !ok
  :: else -> closeDecode(sl, failed)
  fi
}
inline readEnd(sl) {
  look(sl, 1);
  if
  :: (ok || !G_tag) ->
    look(sl, OWN);
    assert(ok && !ddirty[sl]); /* a token leaves that was computed over its own pages */
    dst[sl] = dDecoding; dread[sl] = true
  :: else -> closeDecode(sl, failed)
  fi
}
inline finish(sl) {
#if PREFIXES
  if :: (dpg[HELD(sl, 0)] < 8) -> dpg[HELD(sl, 0)] = SEALEDFOR(dreq[sl] - 1) :: else fi;
#endif
  closeDecode(sl, fine)
}
inline prefillDownAtDecode() {
  pdnD = 0;
#if LIVES > 1
  if
  :: !UNFENCED ->
    x = 0;
    do :: x < SLOTS * 2 -> wr[x * LIVES] = 0; x++ :: else -> break od
  :: else
  fi;
#endif
  s = 0;
  do
  :: s < SLOTS ->
    if :: (dst[s] == dLeased || dst[s] == dVerifying || dst[s] == dDraining) -> w = (dst[s] == dDraining -> dwhy[s] : elsewhere); closeDecode(s, w) :: else fi;
    s++
  :: else -> break
  od
}
inline crashPrefill() {
  pcrashes--; pinc = 1; pdnG = 1; pdnD = 1; ddnP = 0;
  s = 0;
  do :: s < SLOTS -> freePrefill(s); patt[s] = 0; pwhy[s] = 0; s++ :: else -> break od;
  x = 0;
  do :: x < PP -> ppg[x] = 0; x++ :: else -> break od
}
inline crashDecode() {
  dcrashes--; dinc = 1; ddnG = 1; ddnP = 1; pdnD = 0;
  s = 0;
  do
  :: s < SLOTS ->
    dst[s] = dIdle; datt[s] = 0; dwhy[s] = 0; dn[s] = 0; dreq[s] = 0; dread[s] = false; ddirty[s] = false; dhandle[s] = false;
    dl[s * 2] = 0; dl[s * 2 + 1] = 0;
    s++
  :: else -> break
  od;
  x = 0;
  do :: x < DP -> dpg[x] = 0; cont[x] = 0; x++ :: else -> break od;
  /* its registration died with it: what is on the wire fails, and says so to a prefill that lives */
  x = 0;
  do :: x < SLOTS * 2 * LIVES -> if :: wr[x] -> wr[x] = NOWHERE :: else fi; x++ :: else -> break od
}
inline downAtGateway(side) {
  s = 0;
  do
  :: s < SLOTS ->
    if
    :: gst[s] != gIdle ->
      if :: side == 0 -> gpc[s] = true :: else -> gdc[s] = true fi;
      if
      :: (gst[s] == gOpen || (gst[s] == gStreaming && side == 1)) -> closeGateway(s, true)
      :: else -> bothClosed(s)
      fi
    :: else
    fi;
    s++
  :: else -> break
  od
}
inline submit(sl, r) {
  told[r] = 1;
  greq[sl] = r + 1;
  if
  :: (G_admission && PAGES(r) > LIMIT) -> tell(sl); greq[sl] = 0
  :: else -> gatt[sl]++; begin(sl)
  fi
}

#ifdef LIVE
#define NEXTTURN turn = (turn + 1) % (SLOTS * 3);
#define SKIPTURN(who, can) :: atomic { RING(who) && !(can) && !SETTLED -> NEXTTURN }
#else
#define NEXTTURN
#define SKIPTURN(who, can)
#endif
#define ringG(s) (gst[s] != gIdle)
#define ringP(s) (pst[s] == pCompleting)
#define ringD(s) (dst[s] == dLeased || dst[s] == dDraining)

#define SUBMIT(r) :: (r < REQUESTS && told[r] == 0 && (gst[0] == gIdle || gst[SLOTS - 1] == gIdle)) -> \
  d_step { if :: gst[0] == gIdle -> submit(0, r) :: else -> submit((SLOTS - 1), r) fi; inv() }
#define GATEWAY(s0) \
  :: (aborts > 0 && (gst[s0] == gOpen || gst[s0] == gStreaming)) -> d_step { aborts--; closeGateway(s0, false); inv() } \
  :: (aborts > 0 && gst[s0] == gClosing && gagain[s0]) -> d_step { aborts--; gagain[s0] = false; tell(s0); inv() } \
  :: (RING(s0 * 3) && ringG(s0)) -> d_step { \
      if \
      :: gst[s0] == gOpen -> begin2(s0) \
      :: gst[s0] == gStreaming -> send(M(START_D, s0, gatt[s0], 0, gid, (greq[s0] + 4 * PAGES(greq[s0] - 1)))) \
      :: else -> askClose(s0) \
      fi; NEXTTURN inv() } \
  SKIPTURN(s0 * 3, ringG(s0))
inline begin2(sl) {
  send(M(START_D, sl, gatt[sl], 0, gid, (greq[sl] + 4 * PAGES(greq[sl] - 1))));
  if :: !gpc[sl] -> send(M(START_P, sl, gatt[sl], gip, 0, PAGES(greq[sl] - 1))) :: else fi
}
#define PREFILL(s0) \
  :: canAdmitP(s0) -> d_step { admitP(s0); inv() } \
  :: mustLetGoP(s0) -> d_step { php[s0] = 0; inv() } \
  :: pst[s0] == pComputing -> d_step { chunk(s0); inv() } \
  :: (abandons > 0 && (pst[s0] == pWaiting || pst[s0] == pComputing)) -> d_step { abandons--; \
      if \
      :: (SILENT && pst[s0] == pComputing) -> pcount[s0] = pn[s0]; pst[s0] = pFlushing; \
        if :: posted[s0] == settled[s0] -> complete(s0) :: else fi \
      :: else -> stop(s0, failed) \
      fi; inv() } \
  :: (RING(s0 * 3 + 1) && ringP(s0)) -> d_step { complete(s0); NEXTTURN inv() } \
  SKIPTURN(s0 * 3 + 1, ringP(s0))
#define DECODE(s0) \
  :: canAdmitD(s0) -> d_step { admitD(s0); inv() } \
  :: mustLetGoD(s0) -> d_step { dl[s0 * 2] = 0; inv() } \
  :: dst[s0] == dVerifying -> d_step { verifyD(s0); inv() } \
  :: (dst[s0] == dDecoding && !dread[s0]) -> d_step { readBegin(s0); inv() } \
  :: dst[s0] == dReading -> d_step { readEnd(s0); inv() } \
  :: (dst[s0] == dDecoding && dread[s0]) -> d_step { finish(s0); inv() } \
  :: (TIMEOUT_FREES && dst[s0] == dDraining) -> d_step { closeDecode(s0, failed); inv() } \
  :: (RING(s0 * 3 + 2) && ringD(s0)) -> d_step { \
      if :: dst[s0] == dLeased -> sendLease(s0) :: else -> send(M(DRAIN, s0, datt[s0], dip, dinc, 0)) fi; NEXTTURN inv() } \
  SKIPTURN(s0 * 3 + 2, ringD(s0))
#define WRITE(s0, k0, life) \
  :: wr[W(s0, k0, life)] -> d_step { land(W(s0, k0, life), s0, (life), false); inv() } \
  :: (TORN && tears > 0 && wr[W(s0, k0, life)]) -> d_step { tears--; land(W(s0, k0, life), s0, (life), true); inv() }
#define HANDLE(s0, page) \
  :: (handles > 0 && dst[s0] == dWaiting && dn[s0] == 1 && page < DP) -> d_step { handles--; \
      if \
      :: HANDLE_RULES -> dl[s0 * 2] = page + 1; dhandle[s0] = true; dst[s0] = dDecoding \
      :: else -> closeDecode(s0, refused) \
      fi; inv() }
/* To take a prefix and let go of it again and again is a circle too, but not one that nothing leads out of. */
#ifdef LIVE
#define KEEPS(free, wanted) (free + 1 >= wanted)
#else
#define KEEPS(free, wanted) true
#endif
#define HITD(s0, page) \
  :: (KEEPS(DFREE, dn[s0]) && page < DP && dst[s0] == dWaiting && dl[s0 * 2] == 0 && canHit(s0, dpg[page])) -> d_step { dl[s0 * 2] = page + 1; \
      assert(!(G_tag == 0) || SEALEDTENANT(dpg[page]) == TENANT(dreq[s0] - 1)); /* a prefix in another tenant's hands */ inv() }
#define HITP(s0, page) \
  :: (KEEPS(PFREE, pn[s0]) && page < PP && pst[s0] == pWaiting && please[s0] && php[s0] == 0 && canHitP(s0, ppg[page])) -> d_step { php[s0] = page + 1; \
      assert(SEALEDTENANT(ppg[page]) == TENANT(greq[s0] - 1)); inv() }
#define EVICT(page) \
  :: (page < DP && dpg[page] >= 8 && !LISTED(page)) -> d_step { dpg[page] = 0; cont[page] = 0; inv() } \
  :: (page < PP && ppg[page] >= 8 && php[0] != page + 1 && php[SLOTS - 1] != page + 1) -> d_step { ppg[page] = 0; inv() }

active proctype world() {
  do
  SUBMIT(0)
#if REQUESTS > 1
  SUBMIT(1)
#endif
#if REQUESTS > 2
  SUBMIT(2)
#endif
  GATEWAY(0)
  PREFILL(0)
  DECODE(0)
  WRITE(0, 0, 0)
  WRITE(0, 1, 0)
#if LIVES > 1
  WRITE(0, 0, 1)
  WRITE(0, 1, 1)
#endif
#if SLOTS > 1
  GATEWAY(1)
  PREFILL(1)
  DECODE(1)
  WRITE(1, 0, 0)
  WRITE(1, 1, 0)
#if LIVES > 1
  WRITE(1, 0, 1)
  WRITE(1, 1, 1)
#endif
#endif
#if HANDLES > 0
  HANDLE(0, 0)
#if DP > 1
  HANDLE(0, 1)
#endif
#if SLOTS > 1
  HANDLE(1, 0)
#if DP > 1
  HANDLE(1, 1)
#endif
#endif
#endif
#if PREFIXES
  HITD(0, 0)
  HITP(0, 0)
  EVICT(0)
#if DP > 1
  HITD(0, 1)
  EVICT(1)
#endif
#endif
  :: nmsg > 0 -> atomic {
    if
    :: ci = 0
    :: nmsg > 1 -> ci = 1
#if WIRE > 2
    :: nmsg > 2 -> ci = 2
#endif
#if WIRE > 3
    :: nmsg > 3 -> ci = 3
#endif
    fi;
    if
    :: ck = false
    :: repeats > 0 -> ck = true
    fi;
#if ANY_ROOM
    if :: cs = 0 :: cs = SLOTS - 1 fi;
#endif
    d_step { take(ci); ci = 0; handle(); cs = 0; inv() }
  }
  :: (nmsg > 0 && losses > 0) -> d_step { losses--; take(0) }
#if WIRE > 1
  :: (nmsg > 1 && losses > 0) -> d_step { losses--; take(1) }
#endif
#if WIRE > 2
  :: (nmsg > 2 && losses > 0) -> d_step { losses--; take(2) }
#endif
#if WIRE > 3
  :: (nmsg > 3 && losses > 0) -> d_step { losses--; take(3) }
#endif
#if PCRASHES > 0
  :: pcrashes > 0 -> d_step { crashPrefill(); inv() }
  :: pdnG -> d_step { pdnG = 0; downAtGateway(0); inv() }
  :: pdnD -> d_step { prefillDownAtDecode(); inv() }
#endif
#if DCRASHES > 0
  :: dcrashes > 0 -> d_step { crashDecode(); inv() }
  :: ddnG -> d_step { ddnG = 0; downAtGateway(1); inv() }
  :: ddnP -> d_step {
    ddnP = 0;
    s = 0;
    do :: s < SLOTS -> if :: (pst[s] != pIdle && pst[s] != pStopping && please[s]) -> stop(s, elsewhere) :: else fi; s++ :: else -> break od;
    inv() }
#endif
  /* The only end there is: anything else that stands still is an invalid end state, a request that cannot settle. */
  :: (SETTLED && nmsg == 0) -> break
  od
}

#ifdef LIVE
never {
wait:
  do
  :: true
  :: !(SETTLED) -> goto accept_open
  od;
accept_open:
  do
  :: !(SETTLED)
  od
}
#endif
