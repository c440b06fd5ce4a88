#!/usr/bin/env python3
"""A node of Holdfast in Python: the protocol of docs/protocol.md, with the standard library alone.

It works off one delivery at a time: claim, copy, take (or begin), start mark, command, outcome, report. Whatever has to
survive this process is in the mirror (SQLite) before anything is done on the strength of it, so it may be killed at any
line. The command is shell text; the payload is its stdin, the context its environment (HOLDFAST_ATTEMPT is a fit
idempotency key). How it ends is the outcome, as with `holdfast node --exec` (docs/executors.md):

    exit 0                 result             {"exitCode":0,"stdout":"..."}, stdoutBase64 where it is no UTF-8
    exit 65 (EX_DATAERR)   terminal           it will never succeed
    exit 75 (EX_TEMPFAIL)  not_sent           the command asserts that it did nothing: tried again
    anything else          outcome_unknown    also a signal: nobody can tell
    could not be started   not_sent           nothing ran

What it leaves out: a time limit (a command that hangs, or leaves something behind that holds its stdout, is listed as
overdue), probes and replays (what a crash cut stays unknown), sessions' scopes, Sentinel and Cluster, and lanes at the
same time: start several nodes for that.
"""
import argparse, base64, hashlib, itertools, json, os, random, re, select, signal, socket, sqlite3, ssl, subprocess
import sys, threading, time, uuid
from urllib.parse import unquote, urlsplit

ENDS_THE_PROCESS = {'SUPERSEDED', 'MIRROR_CLONED', 'LEFT', 'HOST_RETIRED', 'STALE_REQUEST', 'INVALID_ARGUMENT'}
CLAIMED_AT_ONCE, HELD_AT_MOST = 10, 50
WAIT_AT_MOST_S, ANSWER_WITHIN_S, DRAIN_WITHIN_S = 30, 5, 10


def log(text):
    print(text, file=sys.stderr, flush=True)


def backoff(failures, least, most):
    return min(most, least * 2 ** min(failures, 20)) * random.uniform(0.5, 1)


class Refused(Exception):
    """An error reply, `CODE text`."""

    def __init__(self, text):
        super().__init__(text)
        self.code = re.sub(r'^ERR (?=[A-Z_]+$)', '', text).split(' ')[0]


class Redis:
    """One connection, made when it is needed. After any doubt it is closed: no reply is taken for that of another call."""

    def __init__(self, url):
        self.url, self.socket, self.stream = urlsplit(url), None, None

    def connect(self):
        self.socket = socket.create_connection((self.url.hostname, self.url.port or 6379), ANSWER_WITHIN_S)
        if self.url.scheme == 'rediss':
            self.socket = ssl.create_default_context().wrap_socket(self.socket, server_hostname=self.url.hostname)
        self.stream = self.socket.makefile('rb')
        if self.url.password:
            self.send('AUTH', unquote(self.url.username or '') or 'default', unquote(self.url.password))

    def close(self):
        for each in (self.stream, self.socket):
            if each: each.close()
        self.socket = self.stream = None

    def write(self, *words):
        if not self.socket: self.connect()
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.socket.sendall(b'*%d\r\n' % len(words) + b''.join(b'$%d\r\n%s\r\n' % (len(word), word) for word in words))

    def read(self):
        kind, rest = self.stream.read(1), self.stream.readline()
        if not rest.endswith(b'\r\n'): raise ConnectionError('the connection ended')
        if kind == b'-': return Refused(rest[:-2].decode())
        if kind == b'+': return rest[:-2]
        size = int(rest)
        if kind == b':' or size < 0: return size if kind == b':' else None
        if kind == b'*': return [self.read() for _ in range(size)]
        text = self.stream.read(size + 2)
        if len(text) < size + 2: raise ConnectionError('the connection ended')
        return text[:-2]

    def send(self, *words):
        """One command, written once. Raises OSError when nobody knows whether it was done."""
        try:
            self.write(*words)
            reply = self.read()
        except BaseException:
            self.close()
            raise
        if isinstance(reply, Refused): raise reply
        return reply

    def fcall(self, function, tag, *argv):
        reply = fields(self.send('FCALL', function, 1, tag, *argv))
        if 'replicas' in reply and self.send('WAIT', reply['replicas'], reply['replicas_ms']) < reply['replicas']:
            raise Refused('NOT_REPLICATED fewer replicas have it than wait_replicas says')
        return reply


def fields(flat):
    """Replies are flat lists: field, value, field, value. Lists of such lists become lists of dicts."""
    def value(name, found):
        if isinstance(found, list): return [fields(each) if isinstance(each, list) else each.decode() for each in found]
        return found.decode() if isinstance(found, bytes) and name != 'payload' else found
    return {name.decode(): value(name.decode(), found) for name, found in zip(flat[::2], flat[1::2])}


class Mirror:
    """What outlives this process. Locked for its life; every write is on the disk when it returns."""

    def __init__(self, file, owner):
        self.db = sqlite3.connect(file, timeout=2, isolation_level=None)
        for pragma in ('locking_mode = exclusive', 'journal_mode = wal', 'synchronous = full'):
            self.db.execute('pragma ' + pragma)
        tables = {name for name, in self.db.execute('select name from sqlite_master')}
        known = dict(self.db.execute('select key, value from meta')) if 'meta' in tables else {}
        if tables and known.get('owner') != owner: raise sqlite3.Error(f'{file} is the mirror of something else')
        self.incarnation, self.log_id = int(known.get('incarnation', 0)) + 1, known.get('log_id', '0-0')
        self.write(
            ('create table if not exists meta (key text primary key, value text)',),
            ('create table if not exists copies (delivery text primary key, incarnation, epoch, context, payload)',),
            ('create table if not exists grants (id text primary key, delivery text unique, attempt, started)',),
            ('create table if not exists reports (key text primary key, of, grant_id, kind, result, code, body, ended)',),
            ("insert or replace into meta values ('owner', ?)", owner),
            ("insert or replace into meta values ('incarnation', ?)", self.incarnation))

    def put_back(self):
        self.write(("insert or replace into meta values ('incarnation', ?)", self.incarnation - 1))

    def write(self, *statements):
        """All of it, or nothing; and with it how far the log was seen."""
        self.db.execute('begin immediate')
        try:
            for sql, *values in statements: self.db.execute(sql, values)
            self.db.execute("insert or replace into meta values ('log_id', ?)", [self.log_id])
            self.db.execute('commit')
        except BaseException:
            if self.db.in_transaction: self.db.execute('rollback')
            raise

    def saw(self, log_id):
        self.log_id = max(self.log_id, log_id, key=lambda id: [int(part) for part in id.split('-')])


class Work:
    """A delivery that this process holds."""

    def __init__(self, claimed):
        self.id, self.epoch, self.payload, self.message = claimed['id'], claimed['epoch'], claimed['payload'], claimed
        self.lane = (claimed['conversation'], claimed.get('session'))
        self.grant, self.paused, self.tries, self.not_before = None, 0, 0, 0

    def context(self):
        names = {'HOLDFAST_MESSAGE': 'message', 'HOLDFAST_CONVERSATION': 'conversation', 'HOLDFAST_SENDER': 'sender',
                 'HOLDFAST_SESSION': 'session', 'HOLDFAST_PARENT': 'parent', 'HOLDFAST_CONTENT_TYPE': 'content_type',
                 'HOLDFAST_SHA256': 'sha256', 'HOLDFAST_DELIVERY': 'id', 'HOLDFAST_EPOCH': 'epoch'}
        return {name: str(self.message[field]) for name, field in names.items() if field in self.message}


class Node:
    def __init__(self, options):
        self.options, self.tag = options, '{%s}' % options.hub
        self.mirror = Mirror(options.mirror, f'{options.hub} {options.host} {options.node}')
        self.who = (options.host, options.node, self.mirror.incarnation)
        self.instance, self.request, self.works, self.child = str(uuid.uuid4()), 0, [], None
        self.redis, self.left = Redis(options.redis), threading.Event()
        self.resumed, self.progress_at = False, time.monotonic()
        self.stopping, self.give_up_at = False, float('inf')
        self.woken, waker = os.pipe()
        os.set_blocking(waker, False)
        signal.set_wakeup_fd(waker)
        for name in (signal.SIGTERM, signal.SIGINT): signal.signal(name, self.stop)

    def stop(self, name, _):
        self.stopping, self.give_up_at = True, time.monotonic() + DRAIN_WITHIN_S
        signal.signal(name, signal.SIG_DFL)  # a second one ends it at once

    def sleep(self, seconds, *streams):
        """Until one of the streams has something, a signal comes, or the time is up."""
        return select.select([*streams, *([] if self.stopping else [self.woken])], [], [], max(0, seconds))[0]

    # Calls

    def join(self, redis):
        return redis.fcall('hf_join', self.tag, *self.who, self.instance, '[]', self.mirror.log_id)

    def attest(self):
        """A server that started anew grants nothing before it is shown to hold what was seen of it. Hubs do this as well."""
        self.join(self.redis)  # presents what this node saw
        try:
            server = re.search(r'master_replid:(\w+)', self.redis.send('INFO', 'replication').decode())[1]
            words = [word.decode() for word in self.redis.send('CONFIG', 'GET', 'append*')]
            config = dict(zip(words[::2], words[1::2]))
            policy = config['appendfsync'] if config['appendonly'] == 'yes' else 'no'
        except Refused as error:
            if error.code not in ('NOPERM', 'ERR'): raise  # "unseen" may set work aside: it is said of missing rights alone
            server, policy = '', 'unseen'
        presenter = f'{self.options.host}/{self.options.node}'
        while self.redis.fcall('hf_attest', self.tag, presenter, self.mirror.log_id, policy, '', server)['more']: pass

    def call(self, function, *argv):
        """Repeats a call as it is until it is answered: each of them may be. Raises what ends this process."""
        code = ''
        for failures in itertools.count():
            try:
                if code == 'NOT_JOINED': self.join(self.redis)
                if code == 'NOT_ATTESTED': self.attest()
                return self.redis.fcall(function, self.tag, *self.who, *argv)
            except (OSError, Refused) as error:
                code = getattr(error, 'code', '')
                if code in ENDS_THE_PROCESS or time.monotonic() > self.give_up_at: raise
                log(f'{function} is repeated: {error}')
                if code == 'READONLY': self.redis.close()  # a primary no more: the address may lead elsewhere
                self.sleep(backoff(failures, 0.05, 2))

    def beat(self, pause_ms):
        """Says at the hub's pace that this process lives, on a connection of its own, whatever the command does."""
        redis, code = Redis(self.options.redis), ''
        while not self.left.wait(pause_ms / 1000):
            try:
                if code == 'NOT_JOINED': self.join(redis)
                age_ms = int((time.monotonic() - self.progress_at) * 1000)
                reply = redis.fcall('hf_heartbeat', self.tag, *self.who, self.mirror.log_id, age_ms)
                pause_ms, code = reply['heartbeat_ms'], ''
            except (OSError, Refused) as error:
                code = getattr(error, 'code', '')
                log(f'heartbeat: {error}')
                if code in ENDS_THE_PROCESS - {'HOST_RETIRED'}: self.die()

    def die(self):
        """Another process has our place: nothing of this one goes on. The mirror keeps what was begun."""
        try:
            if child := self.child: os.killpg(child.pid, signal.SIGTERM)
        finally:
            os._exit(1)

    # The life of a node

    def run(self):
        try:
            joined = self.call('hf_join', self.instance, '[]', self.mirror.log_id)
        except Refused as error:  # refused however often it is tried: it never counts up to the one that is in
            if error.code in ('SUPERSEDED', 'MIRROR_CLONED'): self.mirror.put_back()
            raise
        log(f'joined as incarnation {self.mirror.incarnation}')
        beats = threading.Thread(target=self.beat, args=[joined['heartbeat_ms']], daemon=True)
        beats.start()
        self.conclude()
        idle = None
        while not self.stopping:
            work = self.ready()
            if work: self.begin(work)
            elif len(self.works) >= HELD_AT_MOST: self.sleep(self.until_ready())
            elif idle: idle = self.wait(idle)
            else: idle = self.claim()
        self.left.set()
        beats.join()  # a beat after the leave would be refused
        self.call('hf_leave')
        log('left')

    def conclude(self):
        """What an earlier process of this node left: outcomes without an answer, and grants without an outcome."""
        rows = lambda table: self.mirror.db.execute(f'select * from {table} order by rowid').fetchall()
        for row in rows('reports'): self.send_report(*row)
        for grant, delivery, attempt, started in rows('grants'):
            # No start mark is proof that nothing ran. Of a mark without an end nobody can tell; its command may still run.
            if not started: self.report(grant, delivery, 'not_sent', code='never_started')
            else: self.report(grant, attempt, 'outcome_unknown', code='executor_died', ended=0)

    def ready(self):
        """The next to begin: in order, but nothing passes what a pause stopped in its lane."""
        stopped, now = set(), time.monotonic()
        for work in self.works:
            if work.lane not in stopped and work.not_before <= now: return work
            if work.paused: stopped.add(work.lane)

    def until_ready(self):
        return min([work.not_before - time.monotonic() for work in self.works] + [WAIT_AT_MOST_S])

    def claim(self):
        """Takes on what there is; answers the claim where it left nothing to look at."""
        self.request += 1
        reply = self.call('hf_claim', self.request, CLAIMED_AT_ONCE, 0)
        self.progress_at = reply['answered_at'] = time.monotonic()
        reply['over'] = self.redis.socket
        if reply['deliveries']: self.mirror.saw(reply['log_id'])
        held = {work.id: work.epoch for work in self.works}
        works = [Work(each) for each in reply['deliveries'] if each['state'] in ('claimed', 'mirrored', 'delivered')]
        works = [work for work in works if held.get(work.id, -1) < work.epoch]
        good = [work for work in works if hashlib.sha256(work.payload).hexdigest() == work.message.get('sha256')]
        for work in works:
            if work not in good:
                log(f'{work.id}: the payload does not match its digest; refused')
                self.call('hf_refuse', work.id, work.epoch, 'failed', 'payload_corrupt')
        if good: self.take(good)
        if not reply['more'] and not self.resumed:
            self.resumed = True
            self.mirror.write(('delete from copies where incarnation < ?', self.mirror.incarnation))
        return None if reply['more'] else reply

    def take(self, works):
        """Copies, and a grant for the one that runs at once, are durable; then they are handed off, and that one begun."""
        self.works = [work for work in self.works if work.id not in {each.id for each in works}]
        stopped = {work.lane for work in self.works if work.paused}
        first = next((work for work in works if work.lane not in stopped), None)
        # A grant of before was refused for a pause, and the delivery has changed owner since: it never began anything.
        self.mirror.write(*[('delete from grants where delivery = ?', work.id) for work in works],
                          *[('insert or replace into copies values (?, ?, ?, ?, ?)', work.id, self.mirror.incarnation,
                             work.epoch, json.dumps(work.context()), work.payload) for work in works],
                          *([self.mint(first)] if first else []))
        reply = self.call('hf_take', *[word for work in works for word in (work.id, work.epoch, work.grant or '')])
        self.mirror.saw(reply['log_id'])
        self.works += works
        for work, item in zip(works, reply['results']):
            if not item['ok']: self.drop(work, item['code'])
        if reply['begun']: self.begun(first, reply['begun'][0])

    def mint(self, work):
        work.grant = str(uuid.uuid4())
        return 'insert into grants values (?, ?, null, 0)', work.grant, work.id

    def begin(self, work):
        if not work.grant: self.mirror.write(self.mint(work))
        reply = self.call('hf_begin', work.id, work.epoch, work.grant, 0)
        self.mirror.saw(reply['log_id'])
        self.begun(work, reply['results'][0])

    def begun(self, work, item):
        if item['ok']: self.execute(work, f"{work.id}/{item['attempt']}", item['attempt'])
        elif item['code'] == 'PAUSED':  # asked again under the same grant
            work.not_before, work.paused = time.monotonic() + backoff(work.paused, 0.25, 2), work.paused + 1
        else: self.drop(work, item['code'])

    def drop(self, work, why):
        log(f'{work.id} is dropped: {why}')
        self.works.remove(work)
        self.mirror.write(
            ('delete from grants where id = ?', work.grant), ('delete from copies where delivery = ?', work.id))

    def execute(self, work, attempt, number):
        self.mirror.write(('update grants set attempt = ?, started = 1 where id = ?', attempt, work.grant))
        outcome = self.run_command(work, attempt, number)
        answer = self.report(work.grant, attempt, **outcome)
        self.works.remove(work)
        again = outcome['kind'] == 'not_sent' and answer['ok'] and answer['state'] == 'delivered'
        if again and answer['epoch'] == work.epoch:
            work.grant, work.paused, work.not_before = None, 0, time.monotonic() + backoff(work.tries, 0.5, 60)
            work.tries += 1
            self.works.append(work)
        else: self.mirror.write(('delete from copies where delivery = ?', work.id))

    def run_command(self, work, attempt, number):
        about = {'HOLDFAST_HUB': self.options.hub, 'HOLDFAST_HOST': self.options.host, 'HOLDFAST_NODE': self.options.node,
                 'HOLDFAST_ATTEMPT': attempt, 'HOLDFAST_ATTEMPT_NUMBER': str(number), **work.context()}
        pipes = dict.fromkeys(('stdin', 'stdout', 'stderr'), subprocess.PIPE)
        try:
            self.child = subprocess.Popen(self.options.exec, shell=True, start_new_session=True,
                                          env={**os.environ, **about}, **pipes)
        except OSError as error:
            return {'kind': 'not_sent', 'code': 'spawn_failed', 'body': compact({'message': str(error)})}
        out, err = self.child.communicate(work.payload)
        code, self.child = self.child.returncode, None
        if code == 0:
            try: body = {'exitCode': 0, 'stdout': out.decode()}
            except UnicodeDecodeError: body = {'exitCode': 0, 'stdoutBase64': base64.b64encode(out).decode()}
            return {'kind': 'result', 'result': compact(body)}
        name = f'exit_{code}' if code > 0 else f'signal_{signal.Signals(-code).name}'
        kind = {65: 'terminal', 75: 'not_sent'}.get(code, 'outcome_unknown')
        return {'kind': kind, 'code': name, 'body': compact({'stderr': err[-4096:].decode(errors='replace')})}

    # Reports

    def report(self, grant, of, kind, result='', code='', body='', ended=1, suffix=''):
        """The outcome is durable before it is sent, under a key by which the hub knows a repeat."""
        key = f"{grant}.{'unknown' if kind == 'outcome_unknown' else 'outcome'}{suffix}"
        row = (key, of, grant, kind, result, code, body, ended)
        self.mirror.write(('delete from reports where grant_id = ?', grant),
                          ('insert into reports values (?, ?, ?, ?, ?, ?, ?, ?)', *row))
        return self.send_report(*row)

    def send_report(self, key, of, grant, kind, result, code, body, ended):
        reply = self.call('hf_report', of, grant, key, kind, result, code, body, ended)
        answer = reply['results'][0]
        self.mirror.saw(reply['log_id'])
        if not answer['ok'] and answer['code'] == 'RESULT_TOO_LARGE':  # what happened is told without its body
            short = compact({'omitted': answer.get('detail', '')})
            short = {'result': short} if kind == 'result' else {'code': code, 'body': short}
            return self.report(grant, of, kind, ended=ended, suffix='-shortened', **short)
        if not answer['ok']: log(f"{of}: the report was answered {answer['code']}")
        self.mirror.write(('delete from reports where key = ?', key), ('delete from grants where id = ?', grant))
        return answer

    def wait(self, idle):
        """Until there may be something to claim: what comes after the claim's ids wakes it, so nothing is missed."""
        if self.redis.socket is not idle['over']: return  # what answers by now may be behind these ids
        limit = self.until_ready()
        if idle['next_at_ms']:
            limit = min(limit, (idle['next_at_ms'] - idle['now']) / 1000 + idle['answered_at'] - time.monotonic())
        keys = [f'{self.tag}:{name}:{self.options.host}' for name in ('stream', 'bell')]
        block_ms = max(1, int(limit * 1000))
        try:
            self.redis.write('XREAD', 'COUNT', 1, 'BLOCK', block_ms, 'STREAMS', *keys, idle['stream_id'], idle['bell_id'])
            if self.redis.socket not in self.sleep(block_ms / 1000 + 2, self.redis.socket):
                return self.redis.close()  # told to stop, or the connection is half open
            if isinstance(reply := self.redis.read(), Refused): raise reply
        except (OSError, Refused) as error:
            log(f'waiting: {error}')
            self.redis.close()
            self.sleep(0.2)
        for work in self.works:
            if work.paused: work.not_before = 0  # whatever ended the wait may have lifted it


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(',', ':'))


def main():
    parser = argparse.ArgumentParser(description='A node of Holdfast that runs a command for each delivery.')
    parser.add_argument('--redis', default='redis://127.0.0.1:6379')
    parser.add_argument('--hub', default='hf')
    for name in ('host', 'mirror', 'exec'): parser.add_argument('--' + name, required=True)
    parser.add_argument('--node', help='its id, stable across restarts; the host when absent')
    options = parser.parse_args()
    options.node = options.node or options.host
    try:
        Node(options).run()
    except (OSError, Refused, sqlite3.Error) as error:
        sys.exit(f'the node ends: {error}')


if __name__ == '__main__':
    main()
