/** The result of a link: sent by mail, or shown so that the operator passes it on. */
import { Button, Code, Group, Modal, Stack, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { CopyButton } from '../../../parts/copy-button.tsx';
import type { Handover } from '../sale-types.ts';

interface LinkDialogProps {
  /** undefined: closed. */
  readonly handover: Handover | undefined;
  readonly onClose: () => void;
}

export function LinkDialog({ handover, onClose }: LinkDialogProps) {
  const { t } = useTranslation();
  const link = handover?.link ?? undefined;
  return (
    <Modal
      opened={handover !== undefined}
      onClose={onClose}
      title={t('operator.people.people.linkTitle')}
      closeOnClickOutside={link === undefined}
    >
      <Stack>
        <Text fz="sm">
          {link === undefined ? t('operator.people.people.mailed') : t('operator.people.people.linkText')}
        </Text>
        {link !== undefined && (
          <Group wrap="nowrap" align="flex-start" gap="xs">
            <Code block flex={1} className="wrap-any secret-text" data-testid="link">
              {link}
            </Code>
            <CopyButton text={link} wide />
          </Group>
        )}
        <Group justify="flex-end">
          <Button onClick={onClose}>{t('shell.done')}</Button>
        </Group>
      </Stack>
    </Modal>
  );
}
