/** Shows a secret once, in a dialog that closes only when one says that it is kept. */
import { Alert, Button, Code, Group, Modal, Stack } from '@mantine/core';
import { IconLock } from '@tabler/icons-react';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import { CopyButton } from './copy-button.tsx';

interface SecretOnceProps {
  readonly title: string;
  /** undefined: nothing to show, the dialog is shut. Several are shown one below the other. */
  readonly secret: string | undefined;
  readonly onSaved: () => void;
  readonly children?: ReactNode;
}

export function SecretOnce({ title, secret, onSaved, children }: SecretOnceProps) {
  const { t } = useTranslation();
  return (
    <Modal
      opened={secret !== undefined}
      onClose={() => undefined}
      title={title}
      size="lg"
      withCloseButton={false}
      closeOnClickOutside={false}
      closeOnEscape={false}
    >
      <Stack>
        <Alert color="yellow" variant="light" icon={<IconLock size={18} />}>
          {t('shell.secret.once')}
        </Alert>
        <Group className="secret" gap="xs" wrap="nowrap">
          <Code block className="secret-text" data-testid="secret">
            {secret}
          </Code>
          <CopyButton text={secret ?? ''} wide focused />
        </Group>
        {children}
        <Group justify="flex-end">
          <Button onClick={onSaved}>{t('shell.secret.saved')}</Button>
        </Group>
      </Stack>
    </Modal>
  );
}
