/** Keeping bodies for a limited time: which recordings run, beginning one for what the filters name, and ending it. */
import { Button, Group, Paper, SegmentedControl, Stack, Switch, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { IconPlayerRecord } from '@tabler/icons-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { send } from '../../../api/client.ts';
import { has, useMe } from '../../../api/session.ts';
import { useSearchState } from '../../../parts/search-state.ts';
import { Time } from '../../../parts/time.tsx';
import { Act, ActButton, useActs } from '../parts/act.tsx';
import { Facts } from '../parts/facts.tsx';
import { answerKey, useAnswer } from '../parts/load.tsx';
import { AccountLink, shortId } from '../parts/names.tsx';
import type { Recording, Recordings } from '../types.ts';

const path = '/admin/recordings';
const spans = { '15': '15 min', '60': '1 h', '480': '8 h' } as const;

function useRecordings(): Recordings | undefined {
  const acts = useActs();
  const known = has(useMe(), 'bodies');
  return useAnswer<Recordings>(path, {}, 30_000, acts && known).data;
}

/** Shown where this gateway keeps bodies at all. */
export function RecordButton() {
  const { t } = useTranslation();
  const recordings = useRecordings();
  const [opened, dialog] = useDisclosure(false);
  const [search] = useSearchState();
  const [minutes, setMinutes] = useState('60');
  const [errorsOnly, setErrorsOnly] = useState(false);
  if (recordings?.keeps !== true) return null;
  const { accountId, keyId, model } = search;
  const isNamed = [accountId, keyId, model].some((name) => name !== undefined);
  return (
    <>
      <Button variant="default" leftSection={<IconPlayerRecord size={15} />} onClick={dialog.open}>
        {t('operator.traffic.bodies.record')}
      </Button>
      <Act
        opened={opened}
        onClose={dialog.close}
        title={t('operator.traffic.bodies.recordTitle')}
        text={t('operator.traffic.bodies.recordText')}
        action={t('operator.traffic.bodies.record')}
        missing={!isNamed && !errorsOnly}
        stale={[answerKey(path)]}
        act={async (reason) => {
          await send('POST', path, { accountId, keyId, model, errorsOnly, minutes: Number(minutes), reason });
          return t('operator.traffic.bodies.recordDone');
        }}
      >
        <Facts
          of={[
            accountId !== undefined && [t('shell.word.account'), <AccountLink key="account" id={accountId} />],
            keyId !== undefined && [t('shell.word.key'), keyId],
            model !== undefined && [t('shell.word.model'), model],
          ]}
        />
        {!isNamed && (
          <Text fz="sm" c="dimmed">
            {t('operator.traffic.bodies.recordNone')}
          </Text>
        )}
        <Switch
          label={t('operator.traffic.bodies.errorsOnly')}
          checked={errorsOnly}
          onChange={({ currentTarget }) => setErrorsOnly(currentTarget.checked)}
        />
        <SegmentedControl
          aria-label={t('operator.traffic.bodies.recordFor')}
          data={Object.entries(spans).map(([value, label]) => ({ value, label }))}
          value={minutes}
          onChange={setMinutes}
        />
      </Act>
    </>
  );
}

/** A line for each recording that runs; nothing where there is none. */
export function RunningRecordings() {
  const recordings = useRecordings();
  if (recordings === undefined || recordings.rows.length === 0) return null;
  return (
    <Stack gap="xs">
      {recordings.rows.map((recording) => (
        <Running key={recording.id} recording={recording} />
      ))}
    </Stack>
  );
}

function Running({ recording }: { readonly recording: Recording }) {
  const { t } = useTranslation();
  const { id, accountId, keyId, model, errorsOnly, until, by } = recording;
  return (
    <Paper withBorder px="md" py="xs">
      <Group justify="space-between" gap="xs">
        <Group gap="xs" fz="sm">
          <IconPlayerRecord size={15} aria-hidden />
          {t('operator.traffic.bodies.recording')}
          {accountId !== null && <AccountLink id={accountId} />}
          {keyId !== null && <span className="mono">{shortId(keyId)}</span>}
          {model !== null && <span>{model}</span>}
          {errorsOnly && <span>{t('operator.traffic.bodies.errorsOnly')}</span>}
          <Text span fz="sm" c="dimmed">
            {t('operator.traffic.bodies.recordingUntil')} <Time at={until} /> · {by}
          </Text>
        </Group>
        <ActButton
          look={{ variant: 'subtle' }}
          title={t('operator.traffic.bodies.stop')}
          text={t('operator.traffic.bodies.stopText')}
          action={t('operator.traffic.bodies.stop')}
          stale={[answerKey(path)]}
          act={async (reason) => {
            await send('DELETE', `${path}/${encodeURIComponent(id)}`, { reason });
            return t('operator.traffic.bodies.stopped');
          }}
        />
      </Group>
    </Paper>
  );
}
