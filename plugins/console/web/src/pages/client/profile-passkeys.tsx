/** Passkeys: added by the browser, listed, removed. */
import { Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { IconFingerprint } from '@tabler/icons-react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { askAgain } from '../../api/again.ts';
import { addPasskey, canUsePasskeys, deletePasskey, listPasskeys, type PasskeyRow } from '../../api/auth.ts';
import { ApiError } from '../../api/client.ts';
import { Confirm } from '../../parts/confirm.tsx';
import { Panel } from '../../parts/page.tsx';
import { ErrorState, useErrorText } from '../../parts/states.tsx';
import { Steady } from '../../parts/steady.tsx';
import { Time } from '../../parts/time.tsx';
import { useWork } from '../../parts/use-work.ts';

const passkeysKey = ['passkeys'] as const;

export function Passkeys() {
  const { t } = useTranslation();
  const queries = useQueryClient();
  const passkeys = useQuery({ queryKey: passkeysKey, queryFn: listPasskeys });
  const [removed, setRemoved] = useState<PasskeyRow>();
  const changed = () => askAgain(queries, passkeysKey);
  const nameOf = (row: PasskeyRow) => row.name || t('client.profile.unnamed');
  return (
    <Panel title={t('client.profile.passkeys')} hint={t('client.profile.passkeysHint')}>
      <Stack gap="sm">
        {passkeys.isError && <ErrorState error={passkeys.error} onRetry={() => void passkeys.refetch()} />}
        {passkeys.data?.length === 0 && (
          <Text fz="sm" c="dimmed">
            {t('client.profile.noPasskeys')}
          </Text>
        )}
        {passkeys.data?.map((row) => (
          <Group key={row.id} justify="space-between" gap="xs" wrap="nowrap">
            <Group gap="xs" wrap="nowrap" miw={0}>
              <IconFingerprint size={17} aria-hidden />
              <Text fz="sm" truncate>
                {nameOf(row)}
              </Text>
              <Text fz="xs" c="dimmed" component="div">
                <Time at={row.createdAt} />
              </Text>
            </Group>
            <Button size="compact-xs" variant="subtle" color="red" onClick={() => setRemoved(row)}>
              {t('client.profile.remove')}
            </Button>
          </Group>
        ))}
        <Steady>
          <Add onAdded={changed} />
        </Steady>
      </Stack>
      <Confirm
        opened={removed !== undefined}
        title={t('client.profile.removePasskey', { name: removed === undefined ? '' : nameOf(removed) })}
        action={t('client.profile.remove')}
        danger
        onConfirm={() => deletePasskey(removed!.id).then(changed)}
        onClose={() => setRemoved(undefined)}
      >
        {t('client.profile.removeWords')}
      </Confirm>
    </Panel>
  );
}

function Add({ onAdded }: { readonly onAdded: () => Promise<unknown> }) {
  const { t } = useTranslation();
  const textOf = useErrorText();
  const [name, setName] = useState('');
  const { busy, problem, run } = useWork((error) => {
    // Whatever the browser says, nothing was added; the usual reason is that the person shut its dialog.
    if (!(error instanceof ApiError)) return t('entry.signIn.cancelled');
    return error.code === 'session_not_fresh' ? t('client.profile.fresh') : textOf(error);
  });
  const add = () =>
    run(async () => {
      await addPasskey(name.trim() || t('client.profile.unnamed'));
      setName('');
      await onAdded();
    });
  if (!canUsePasskeys()) return <Text fz="sm">{t('client.profile.noSupport')}</Text>;
  return (
    <Group gap="xs" align="flex-start">
      <TextInput
        className="grow"
        aria-label={t('client.profile.passkeyName')}
        placeholder={t('client.profile.passkeyName')}
        maxLength={60}
        value={name}
        error={problem}
        onChange={({ currentTarget }) => setName(currentTarget.value)}
      />
      <Button variant="default" loading={busy} onClick={() => void add()}>
        {t('client.profile.addPasskey')}
      </Button>
    </Group>
  );
}
