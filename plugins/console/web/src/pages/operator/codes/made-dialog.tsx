/** The codes that were made, shown once: to copy, or as a file. */
import { Alert, Button, Code, CopyButton, Group, Modal, ScrollArea, Stack } from '@mantine/core';
import { IconCheck, IconCopy, IconDownload, IconLock } from '@tabler/icons-react';
import { useTranslation } from 'react-i18next';
import { saveText } from '../parts/save-text.ts';
import type { MadeCodes } from '../sale-types.ts';
import { toCsv } from '../sums/rows-csv.ts';

interface MadeDialogProps {
  /** undefined: closed. */
  readonly made: MadeCodes | undefined;
  readonly onClose: () => void;
}

export function MadeDialog({ made, onClose }: MadeDialogProps) {
  const { t } = useTranslation();
  const codes = made?.codes ?? [];
  const batch = made?.batch ?? '';
  const save = () =>
    saveText(
      `${batch}.csv`,
      'text/csv;charset=utf-8',
      toCsv(
        ['code', 'batch'],
        codes.map((code) => [code, batch]),
      ),
    );
  return (
    // Only the button closes it: the codes are not shown again.
    <Modal
      opened={made !== undefined}
      onClose={() => undefined}
      withCloseButton={false}
      closeOnEscape={false}
      closeOnClickOutside={false}
      size="lg"
      title={t('operator.sales.codes.made', { count: codes.length, batch })}
    >
      <Stack>
        <Alert color="yellow" variant="light" icon={<IconLock size={18} />} title={t('operator.sales.codes.shownOnce')}>
          {t('operator.sales.codes.shownOnceHint')}
        </Alert>
        <ScrollArea.Autosize mah={280} viewportProps={{ tabIndex: 0 }}>
          <Code block data-testid="codes">
            {codes.join('\n')}
          </Code>
        </ScrollArea.Autosize>
        <Group justify="space-between">
          <Group gap="xs">
            <CopyButton value={codes.join('\n')}>
              {({ copied, copy }) => (
                <Button
                  variant="default"
                  leftSection={copied ? <IconCheck size={15} /> : <IconCopy size={15} />}
                  onClick={copy}
                  data-autofocus
                >
                  {copied ? t('operator.sales.codes.copiedAll') : t('operator.sales.codes.copyAll')}
                </Button>
              )}
            </CopyButton>
            <Button variant="default" leftSection={<IconDownload size={15} />} onClick={save}>
              {t('operator.sales.codes.download')}
            </Button>
          </Group>
          <Button onClick={onClose}>{t('operator.sales.codes.saved')}</Button>
        </Group>
      </Stack>
    </Modal>
  );
}
