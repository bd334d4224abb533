// Run by `node --test`: what programs for Node.js are made of.
import assert from 'node:assert/strict';
import { exec, execFileSync, fork, spawn } from 'node:child_process';
import { createHash, generateKeyPairSync, webcrypto, pbkdf2, randomBytes, scrypt, sign, verify } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream, createWriteStream, readFileSync, watch, writeFileSync } from 'node:fs';
import * as fs from 'node:fs/promises';
import net from 'node:net';
import os from 'node:os';
import { performance } from 'node:perf_hooks';
import { createInterface } from 'node:readline';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import test from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';
import { gunzipSync, createGzip, brotliCompressSync, brotliDecompressSync } from 'node:zlib';

if (!isMainThread) parentPort.postMessage(workerData * 2);
else if (process.argv[2] === 'forked') process.on('message', (n) => { process.send(n + 1, () => process.disconnect()); });
else {
  test('async files', async () => {
    const folder = await fs.mkdtemp('files-');
    await Promise.all(Array.from({ length: 50 }, (_, i) => fs.writeFile(`${folder}/${i}`, 'x'.repeat(i))));
    assert.equal((await fs.readdir(folder, { withFileTypes: true })).filter((e) => e.isFile()).length, 50);
    assert.equal((await fs.stat(`${folder}/49`)).size, 49);
    await fs.rename(`${folder}/1`, `${folder}/one`);
    await fs.copyFile(`${folder}/one`, `${folder}/copy`);
    await fs.symlink('one', `${folder}/link`);
    assert.equal(await fs.readlink(`${folder}/link`), 'one');
    await fs.cp(folder, `${folder}-copy`, { recursive: true });
    const handle = await fs.open(`${folder}/appended`, 'a+');
    await handle.appendFile('more'); await handle.sync(); await handle.datasync(); await handle.truncate(2); await handle.close();
    await fs.chmod(`${folder}/one`, 0o600); await fs.utimes(`${folder}/one`, 1, 2); await fs.access(`${folder}/one`);
    assert.equal(await fs.realpath(`${folder}/link`), await fs.realpath(`${folder}/one`));
    await fs.rm(folder, { recursive: true });
    await fs.rm(`${folder}-copy`, { recursive: true });
    writeFileSync('sync', 'text'); assert.equal(readFileSync('sync', 'utf8'), 'text');
  });
  test('streams', async () => {
    const upper = new Transform({ transform(chunk, _, done) { done(null, chunk.toString().toUpperCase()); } });
    writeFileSync('in', 'line\n'.repeat(50000));
    await pipeline(createReadStream('in'), upper, createGzip(), createWriteStream('out.gz'));
    assert.equal(gunzipSync(readFileSync('out.gz')).toString(), 'LINE\n'.repeat(50000));
    let lines = 0;
    for await (const _ of createInterface({ input: createReadStream('in') })) ++lines;
    assert.equal(lines, 50000);
    assert.equal(brotliDecompressSync(brotliCompressSync('brotli')).toString(), 'brotli');
  });
  test('worker threads', async () => {
    const doubled = await Promise.all([1, 2, 3, 4].map(async (n) => (await once(new Worker(process.argv[1], { workerData: n }), 'message'))[0]));
    assert.deepEqual(doubled, [2, 4, 6, 8]);
  });
  test('child processes', async () => {
    assert.equal(execFileSync('sh', ['-c', 'echo from sh; exit 0']).toString(), 'from sh\n');
    assert.equal((await promisify(exec)('cat in | wc -l')).stdout.trim(), '50000');
    const [code] = await once(spawn(process.execPath, ['-e', 'process.exit(7)']), 'exit');
    assert.equal(code, 7);
    const child = fork(process.argv[1], ['forked']);
    child.send(41);
    assert.equal((await once(child, 'message'))[0], 42);
    const sleeper = spawn('sleep', ['100']); sleeper.kill('SIGTERM');
    assert.equal((await once(sleeper, 'exit'))[1], 'SIGTERM');
  });
  test('crypto', async () => {
    assert.equal(createHash('sha256').update('abc').digest('hex').slice(0, 8), 'ba7816bf');
    assert.equal((await promisify(pbkdf2)('p', 's', 1000, 32, 'sha256')).length, 32);
    assert.equal((await promisify(scrypt)('p', 's', 32)).length, 32);
    assert.equal(randomBytes(16).length, 16);
    const { publicKey, privateKey } = generateKeyPairSync('ed25519');
    assert.ok(verify(null, 'data', publicKey, sign(null, 'data', privateKey)));
    assert.ok(new Uint8Array(await webcrypto.subtle.digest('SHA-512', Buffer.from('abc'))).length === 64);
  });
  test('timers and time', async () => {
    const begin = performance.now();
    await Promise.all([sleep(5), sleep(10), new Promise((resolve) => setImmediate(resolve))]);
    assert.ok(performance.now() - begin >= 9 && Date.now() > 0 && process.hrtime.bigint() > 0n);
  });
  test('a socket of the family AF_UNIX, and no other', async () => {
    const server = net.createServer((socket) => socket.end('hello')).listen('socket');
    await once(server, 'listening');
    let said = '';
    for await (const chunk of net.connect('socket')) said += chunk;
    assert.equal(said, 'hello');
    server.close();
    const [error] = await once(net.connect({ host: '127.0.0.1', port: 1 }), 'error');
    assert.equal(error.code, 'EACCES');
  });
  test('memory, signals, machine', async () => {
    const big = Array.from({ length: 200 }, () => Buffer.alloc(100000, 1));
    assert.equal(big.length, 200);
    let objects = []; for (let i = 0; i < 300000; ++i) objects.push({ i });
    globalThis.gc?.();
    const signaled = once(process, 'SIGUSR2'); process.kill(process.pid, 'SIGUSR2'); await signaled;
    assert.ok(os.cpus().length > 0 && os.totalmem() > 0 && process.memoryUsage().rss > 0 && process.resourceUsage().maxRSS > 0);
    assert.equal(os.userInfo === undefined, false);
    const bytes = await WebAssembly.compile(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]));
    assert.ok(bytes);
    const watcher = watch('.'); setTimeout(() => writeFileSync('watched', 'x'), 5); await once(watcher, 'change'); watcher.close();
  });
}
