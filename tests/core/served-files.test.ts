/** Which file a command without `--config` is about. */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { defaultFile, noteServed } from '../../core/process/served-files.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

test('a command is about the file that a living process serves from the directory, and says so', () => {
  const directory = temporaryDirectory('served-');
  const none = defaultFile(directory);
  assert.equal(none.file, 'config/demo.yaml');
  assert.match(none.why, /^No gateway runs from .*: this is about config\/demo\.yaml; --config FILE/);

  const files = ['one.yaml', 'two.yaml'].map((name) => {
    const file = join(directory, name);
    writeFileSync(file, `gateway: main\nschema: ${name[0]}\nplugins: [passthrough]\ndata: ${directory}\n`);
    return file;
  });
  const ends: (() => void)[] = [];
  const before = process.env['DATA_DIR'];
  delete process.env['DATA_DIR'];
  try {
    noteServed(files.slice(0, 1), (end) => void ends.push(end));
    assert.deepEqual(defaultFile(directory), {
      file: files[0],
      why: `This is about ${files[0]}, which is served here; --config FILE chooses another one.`,
    });
    ends.pop()!();
    assert.deepEqual(readdirSync(join(directory, 'serving')), []);
    noteServed(files, (end) => void ends.push(end));
  } finally {
    if (before !== undefined) process.env['DATA_DIR'] = before;
  }
  assert.equal(defaultFile(directory).file, files[0]);
  assert.match(defaultFile(directory).why, /two\.yaml is served here, too: --config FILE/);
  ends.pop()!();
});

test('notes of processes that have ended, and notes that are no list, are passed over', () => {
  const directory = temporaryDirectory('served-');
  mkdirSync(join(directory, 'serving'));
  // Larger than any process id of Linux.
  writeFileSync(join(directory, 'serving', '99999999.json'), '["/gone.yaml"]');
  writeFileSync(join(directory, 'serving', `${process.pid}.json`), '{');
  assert.equal(defaultFile(directory).file, 'config/demo.yaml');
});

test('a directory that cannot be written keeps no gateway from serving', () => {
  const directory = temporaryDirectory('served-');
  const file = join(directory, 'one.yaml');
  writeFileSync(file, `gateway: main\nplugins: [passthrough]\ndata: ${directory}\n`);
  writeFileSync(join(directory, 'serving'), 'a file where the folder would be');
  const ends: (() => void)[] = [];
  noteServed([file], (end) => void ends.push(end));
  ends.pop()!();
  assert.equal(defaultFile(directory).file, 'config/demo.yaml');
});
