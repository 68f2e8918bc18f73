/** Signs in again in front of the page that is open, which keeps the typed text. Loaded when the session has ended. */
import { Modal, Stack, Text } from '@mantine/core';
import { useLocation } from '@tanstack/react-router';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { get } from '../../api/client.ts';
import { meQuery, queries } from '../../api/session.ts';
import { setSessionEnded } from '../../api/session-end.ts';
import type { Me } from '../../api/types.ts';
import { SecondFactorForm } from './second-factor.tsx';
import { OtherWays, PasswordForm } from './ways-in.tsx';

export default function SignInAgain() {
  const { t } = useTranslation();
  const { href } = useLocation();
  const [second, setSecond] = useState(false);
  return (
    <Modal
      opened
      onClose={() => undefined}
      withCloseButton={false}
      closeOnEscape={false}
      closeOnClickOutside={false}
      title={second ? t('entry.second.title') : t('entry.again.title')}
    >
      <Stack gap="md">
        <Text fz="sm" c="dimmed">
          {second ? t('entry.second.hint') : t('entry.again.hint')}
        </Text>
        {second ? (
          <SecondFactorForm onDone={proceed} />
        ) : (
          <>
            <PasswordForm onDone={proceed} onSecond={() => setSecond(true)} />
            <OtherWays onDone={proceed} next={href.replace(/^\/console/, '') || '/'} />
          </>
        )}
      </Stack>
    </Modal>
  );
}

/** Another person begins at their own first page, without anything of the earlier session. */
async function proceed(): Promise<void> {
  const before = queries.getQueryData(meQuery.queryKey);
  const me = await get<Me>('/me');
  if (me.person?.id !== before?.person?.id || me.role !== before?.role) return location.assign('/console/');
  setSessionEnded(false);
  await queries.invalidateQueries();
}
