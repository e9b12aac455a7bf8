//! Texts that C fills into fixed buffers.

use std::ffi::c_char;

/// Up to the first NUL or the end of the buffer; absent if that is not UTF-8.
pub(crate) fn of_buffer(buffer: &[c_char]) -> Option<String> {
    let bytes: Vec<u8> = buffer.iter().map(|c| c.cast_unsigned()).take_while(|b| *b != 0).collect();
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_at_the_first_nul_or_with_the_buffer() {
        let bytes = |text: &[u8]| text.iter().map(|b| b.cast_signed()).collect::<Vec<c_char>>();
        assert_eq!(of_buffer(&bytes(b"MIG 1g\0rubbish")), Some("MIG 1g".to_owned()));
        assert_eq!(of_buffer(&bytes(b"full")), Some("full".to_owned()));
        assert_eq!(of_buffer(&bytes(b"\xff\0")), None);
    }
}
