/** The directory of a company (SCIM): its address here, and the token, which is shown once. */
import { Button, Group, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { send } from '../../../api/client.ts';
import type { CompanySignIn } from '../../../api/types.ts';
import { Confirm } from '../../../parts/confirm.tsx';
import { CopyButton } from '../../../parts/copy-button.tsx';
import { Panel } from '../../../parts/page.tsx';
import { SecretOnce } from '../../../parts/secret-once.tsx';
import { ErrorState } from '../../../parts/states.tsx';
import { Time } from '../../../parts/time.tsx';
import { useWork } from '../../../parts/use-work.ts';

interface DirectoryProps {
  readonly of: CompanySignIn['directory'];
  readonly onChanged: () => Promise<unknown>;
}

export function Directory({ of: { address, token }, onChanged }: DirectoryProps) {
  const { t } = useTranslation();
  const [made, setMade] = useState<string>();
  const [ending, setEnding] = useState(false);
  const { busy, problem, run } = useWork((error) => error);
  const renew = async () => {
    const answer = await send<{ token: string }>('POST', '/members/sign-in/directory');
    setMade(answer.token);
    await onChanged();
  };
  const end = async () => {
    await send('DELETE', '/members/sign-in/directory');
    await onChanged();
  };
  return (
    <Panel title={t('client.company.directory')}>
      <Stack>
        <Text fz="sm">{t('client.company.directoryHint')}</Text>
        <Group gap={6} wrap="nowrap">
          <Text fz="sm">{t('client.company.directoryAddress')}</Text>
          <Text fz="sm" className="mono" truncate>
            {address}
          </Text>
          <CopyButton text={address} label={t('client.company.directoryAddress')} />
        </Group>
        {token !== null && (
          <Text fz="sm">
            {t('client.company.tokenUsed')} <Time at={token.lastUsedAt} />
          </Text>
        )}
        {problem !== undefined && <ErrorState error={problem} />}
        <Group justify="flex-end">
          {token !== null && (
            <Button variant="subtle" color="red" onClick={() => setEnding(true)}>
              {t('client.company.endToken')}
            </Button>
          )}
          <Button variant="default" loading={busy} onClick={() => void run(renew)}>
            {t(token === null ? 'client.company.makeToken' : 'client.company.newToken')}
          </Button>
        </Group>
      </Stack>
      <SecretOnce title={t('client.company.tokenMade')} secret={made} onSaved={() => setMade(undefined)} />
      <Confirm
        opened={ending}
        title={t('client.company.endTokenTitle')}
        action={t('client.company.endToken')}
        danger
        onConfirm={end}
        onClose={() => setEnding(false)}
      >
        {t('client.company.endTokenWords')}
      </Confirm>
    </Panel>
  );
}
